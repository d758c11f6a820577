--- Where things are opened.
local M = {}

local api = vim.api

---@param win integer
local function is_normal(win)
  local buf = api.nvim_win_get_buf(win)
  return api.nvim_win_get_config(win).relative == ""
    and vim.bo[buf].filetype ~= "crewlog"
    and not vim.wo[win].winfixbuf
    and not vim.list_contains({ "quickfix", "terminal", "prompt", "help" }, vim.bo[buf].buftype)
end

--- The window in which a user would expect a file to appear: this one, the one before, or any; never the sidebar.
---@return integer?
local function target()
  local wins = { api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr("#")) }
  vim.list_extend(wins, api.nvim_tabpage_list_wins(0))
  return vim.iter(wins):find(function(win)
    return win ~= 0 and is_normal(win)
  end)
end

--- Opens a file or one of our buffers, not in the sidebar's window.
---@param name string
---@param how? "edit"|"split"|"vsplit"|"tab"
function M.open(name, how)
  how = how or "edit"
  local escaped = vim.fn.fnameescape(name)
  if how == "tab" then
    vim.cmd("tabedit " .. escaped)
    return
  end
  local win = target()
  if win then
    api.nvim_set_current_win(win)
    if how == "edit" and api.nvim_get_current_buf() == vim.fn.bufnr("^" .. vim.fn.escape(name, "\\[]*?{},$~") .. "$") then
      return -- `:edit` would read it anew, or fail where it was changed
    end
    local command = how == "edit" and (vim.o.hidden and "edit" or vim.bo.modified and "split" or "edit") or how
    vim.cmd(command .. " " .. escaped)
    return
  end
  local options = require("crewlog.config").options.sidebar
  local side = require("crewlog.sidebar.view").win()
  vim.cmd((options.position == "left" and "botright" or "topleft") .. " vertical split")
  for _, option in ipairs({ "winfixwidth", "number", "relativenumber", "signcolumn", "wrap", "list", "cursorline", "foldenable" }) do
    vim.cmd("setlocal " .. option .. "<")
  end
  vim.cmd("edit " .. escaped)
  if side then
    api.nvim_win_set_width(side, options.width)
  end
end

--- Shows lines in a floating window in the middle; `q`, `<Esc>` and leaving it close it.
---@param lines string[]
---@param title string
---@param filetype? string
---@return integer win
---@return integer buf
function M.float(lines, title, filetype)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, false, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = "wipe"
  local width = 20
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.min(width, math.max(20, vim.o.columns - 4))
  local height = math.max(1, math.min(#lines, vim.o.lines - 4))
  local win = api.nvim_open_win(buf, true, {
    relative = "editor",
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    style = "minimal",
    border = "rounded",
    title = " " .. title .. " ",
  })
  vim.wo[win].wrap = true
  if filetype then
    vim.bo[buf].filetype = filetype
  end
  for _, key in ipairs({ "q", "<Esc>", "?" }) do
    vim.keymap.set("n", key, "<Cmd>close<CR>", { buffer = buf, nowait = true })
  end
  api.nvim_create_autocmd("WinLeave", {
    buffer = buf,
    once = true,
    callback = function()
      if api.nvim_win_is_valid(win) then
        api.nvim_win_close(win, true)
      end
    end,
  })
  return win, buf
end

return M
