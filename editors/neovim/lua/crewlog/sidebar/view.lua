--- The sidebar's buffer and windows. Only lines that changed are written, and nobody's cursor moves.
local config = require("crewlog.config")
local rows_of = require("crewlog.sidebar.rows")
local store = require("crewlog.store")

local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("crewlog.sidebar")

---@type integer? the buffer, once it was made
M.buf = nil
---@type crewlog.Row[] what stands in it, by line
M.rows = {}
---@type boolean
M.completed = nil

local expanded = {} ---@type table<string, boolean> as the user left them, by key
local last_key ---@type string? where the cursor was when the sidebar was closed
local timer ---@type uv.uv_timer_t?
local scheduled = false
local awaited ---@type { key: string, seen: string? }? row to go to once it is there, unless the user moves on meanwhile
local last_cost = 0 -- milliseconds of the last drawing

---@param key string
---@param by_default boolean
local function is_expanded(key, by_default)
  local said = expanded[key]
  if said == nil then
    if key:sub(1, 5) == "list\1" then
      expanded[key] = by_default -- so that a list does not close under the user's eyes when its last task is done
    end
    return by_default
  end
  return said
end

---@param win integer
---@return boolean
local function shows(win)
  return api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == M.buf
end

--- The sidebar's window in a tab page.
---@param tab? integer
---@return integer?
function M.win(tab)
  return vim.iter(M.buf and api.nvim_tabpage_list_wins(tab or 0) or {}):find(shows)
end

---@return integer[]
local function all_wins()
  return M.buf and vim.fn.win_findbuf(M.buf) or {}
end

--- The row under the cursor of the sidebar.
---@return crewlog.Row?
function M.current()
  local win = M.win()
  return win and M.rows[api.nvim_win_get_cursor(win)[1]] or nil
end

---@param lines { [string]: integer }
---@param old crewlog.Row[]
---@param from integer
---@return integer # where the row that was at `from` is now, or one that stood near it
local function new_line(lines, old, from)
  for i = from, #old do
    if lines[old[i].key] then
      return lines[old[i].key]
    end
  end
  for i = math.min(from, #old), 1, -1 do
    if lines[old[i].key] then
      return lines[old[i].key]
    end
  end
  return 1
end

---@alias crewlog.Hunk { [1]: integer, [2]: integer, [3]: integer, [4]: integer } as of `vim.diff`

---@param old crewlog.Row[]
---@param new crewlog.Row[]
---@return crewlog.Hunk[]
---@return boolean moved whether a row may stand on another line now
local function hunks_between(old, new)
  local head, stop, new_stop = 0, #old, #new
  while head < stop and head < new_stop and old[head + 1].sig == new[head + 1].sig do
    head = head + 1
  end
  while stop > head and new_stop > head and old[stop].sig == new[new_stop].sig do
    stop, new_stop = stop - 1, new_stop - 1
  end
  local moved = #old ~= #new
  for i = head + 1, moved and head or stop do
    moved = moved or old[i].key ~= new[i].key
  end
  local function joined(rows, last)
    local sigs = {}
    for i = head + 1, last do
      sigs[#sigs + 1] = rows[i].sig .. "\n"
    end
    return table.concat(sigs)
  end
  local hunks = vim.diff(joined(old, stop), joined(new, new_stop), { result_type = "indices" }) --[[@as crewlog.Hunk[] ]]
  for _, hunk in ipairs(hunks) do
    hunk[1], hunk[3] = hunk[1] + head, hunk[3] + head
  end
  return hunks, moved
end

--- Writes what changed.
function M.draw()
  local buf = M.buf
  if not buf or not api.nvim_buf_is_loaded(buf) then
    return
  end
  local began = vim.uv.hrtime()
  local old, new = M.rows, rows_of.all({ expanded = is_expanded, completed = M.completed })
  local views = {}
  for _, win in ipairs(all_wins()) do
    views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  local function lines_from(first, count)
    local lines = {}
    for i = first, first + count - 1 do
      lines[#lines + 1] = new[i].text
    end
    return lines
  end
  M.rows = new
  local hunks, moved = { { 1, -1, 1, #new } }, false
  if #old > 0 then
    hunks, moved = hunks_between(old, new)
  end
  vim.bo[buf].modifiable = true
  for i = #hunks, 1, -1 do
    local start, count, new_start, new_count = unpack(hunks[i])
    if count == -1 then
      api.nvim_buf_set_lines(buf, 0, -1, false, lines_from(1, #new))
    else
      local first = count == 0 and start or start - 1
      api.nvim_buf_set_lines(buf, first, first + count, false, lines_from(new_start, new_count))
    end
  end
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  if moved then
    local lines = {}
    for i, row in ipairs(new) do
      lines[row.key] = i
    end
    for win, view in pairs(views) do
      local line = new_line(lines, old, view.lnum)
      local down = line - view.lnum
      view.lnum, view.topline = line, math.max(1, view.topline + down)
      api.nvim_win_call(win, function()
        local now = vim.fn.winsaveview()
        if now.lnum ~= view.lnum or now.topline ~= view.topline or now.col ~= view.col then
          vim.fn.winrestview(view)
        end
      end)
    end
  end
  M.go_to_awaited()
  last_cost = (vim.uv.hrtime() - began) / 1e6
end

--- Writes everything, for `:edit` in the sidebar.
function M.redraw()
  M.rows = {}
  M.draw()
end

--- Draws soon, once for all changes until then; a board that is costly to draw is drawn less often.
function M.schedule()
  if scheduled or #all_wins() == 0 then
    return
  end
  scheduled = true
  vim.defer_fn(function()
    scheduled = false
    M.draw()
  end, math.min(500, math.max(10, math.floor(last_cost * 2))))
end

--- Highlights are set while lines are shown: ten thousand of them cost nothing until then.
api.nvim_set_decoration_provider(ns, {
  on_win = function(_, _, buf)
    return buf == M.buf
  end,
  on_line = function(_, _, buf, line)
    local row = M.rows[line + 1]
    for _, mark in ipairs(row and row.marks or {}) do
      api.nvim_buf_set_extmark(buf, ns, line, mark[1], { end_col = mark[2], hl_group = mark[3], ephemeral = true, strict = false })
    end
  end,
})

local function remember()
  local row = M.current()
  last_key = row and row.key or last_key
end

local function watch_time()
  if timer then
    return
  end
  timer = assert(vim.uv.new_timer())
  timer:start(30000, 30000, vim.schedule_wrap(M.schedule))
end

---@param on_create fun(buf: integer)
local function make_buffer(on_create)
  local buf = api.nvim_create_buf(false, true)
  M.buf, M.rows = buf, {}
  M.completed = config.options.sidebar.completed
  api.nvim_buf_set_name(buf, "crewlog://sidebar")
  vim.bo[buf].buftype = "nofile"
  vim.bo[buf].bufhidden = "hide"
  vim.bo[buf].swapfile = false
  vim.bo[buf].modifiable = false
  vim.bo[buf].undolevels = -1
  api.nvim_create_autocmd("BufWinLeave", { buffer = buf, callback = remember })
  api.nvim_create_autocmd("CursorMoved", { buffer = buf, callback = remember })
  api.nvim_create_autocmd("BufWipeout", {
    buffer = buf,
    callback = function()
      M.buf, M.rows = nil, {}
    end,
  })
  on_create(buf)
  vim.bo[buf].filetype = "crewlog"
end

local WINDOW = {
  number = false,
  relativenumber = false,
  signcolumn = "no",
  foldcolumn = "0",
  statuscolumn = "",
  wrap = false,
  list = false,
  spell = false,
  foldenable = false,
  cursorline = true,
  winfixwidth = true,
  winfixbuf = true,
  colorcolumn = "",
}

--- Shows the sidebar in this tab page, and goes to it.
---@param on_create fun(buf: integer) called when its buffer is made
---@return integer win
function M.open(on_create)
  local win = M.win()
  if win then
    api.nvim_set_current_win(win)
    return win
  end
  if not M.buf or not api.nvim_buf_is_valid(M.buf) then
    make_buffer(on_create)
  end
  local key = last_key
  local options = config.options.sidebar
  win = api.nvim_open_win(M.buf, true, { split = options.position, win = -1, width = options.width })
  for name, value in pairs(WINDOW) do
    api.nvim_set_option_value(name, value, { scope = "local", win = win })
  end
  if vim.go.statusline == "" then
    api.nvim_set_option_value("statusline", " Crewlog", { scope = "local", win = win })
  end
  M.draw()
  if key then
    M.go_to(key)
  end
  watch_time()
  return win
end

--- Puts the cursor of the sidebar on a row.
---@param key string
---@return boolean # whether there is such a row
function M.go_to(key)
  local win = M.win()
  for line, row in ipairs(win and M.rows or {}) do
    if row.key == key then
      api.nvim_win_set_cursor(win, { line, 0 })
      return true
    end
  end
  return false
end

--- Goes to the row that is awaited, if it is there by now.
function M.go_to_awaited()
  local row = awaited and M.current()
  if not awaited or not row then
    return
  elseif awaited.seen ~= row.key or M.go_to(awaited.key) then
    awaited = nil
  end
end

--- Puts the cursor on a row now, or as soon as the server told of it.
---@param key string
function M.go_to_soon(key)
  local row = M.current()
  awaited = { key = key, seen = row and row.key }
  M.schedule()
end

function M.close()
  local win = M.win()
  if not win then
    return
  end
  remember()
  if #api.nvim_list_wins() == 1 or (#api.nvim_tabpage_list_wins(0) == 1 and #api.nvim_list_tabpages() == 1) then
    api.nvim_set_option_value("winfixbuf", false, { scope = "local", win = win })
    vim.cmd.enew() -- the last window cannot be closed
  else
    api.nvim_win_close(win, true)
  end
end

--- Opens or closes a row's children.
---@param key string
---@param open boolean
function M.set_expanded(key, open)
  expanded[key] = open
  M.draw()
end

--- Opens or closes all rows that have children.
---@param open boolean
function M.set_all_expanded(open)
  for _, row in ipairs(M.rows) do
    if row.expanded ~= nil then
      expanded[row.key] = open
    end
  end
  M.draw()
end

store.listen(M.schedule)

return M
