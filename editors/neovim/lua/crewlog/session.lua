--- Sessions and transcripts as Markdown buffers. Only pages of them are loaded: the end first, what is before it when it is scrolled to.
local client = require("crewlog.client")
local config = require("crewlog.config")
local names = require("crewlog.names")
local session_text = require("crewlog.session_text")
local store = require("crewlog.store")
local text = require("crewlog.text")

local M = {}

local api = vim.api
local PAGE_BYTES = 8 * 1024 * 1024

---@class crewlog.Page
---@field entries crewlog.Entry[] oldest first
---@field total integer entries in all
---@field more boolean whether there are more in the direction that was asked
---@field leaf? string
---@field broken? crewlog.Break

---@class crewlog.Source where entries come from
---@field title fun(): string
---@field learn? fun(done: fun()) asks for what the title needs, where it is not known
---@field page fun(self: crewlog.Source, where: { before?: crewlog.Entry, after?: crewlog.Entry, limit: integer }, done: fun(err?: crewlog.Error, page?: crewlog.Page))
---@field whole fun(self: crewlog.Source, entry: crewlog.Entry, done: fun(err?: crewlog.Error, entry?: crewlog.Entry))

---@class crewlog.View
---@field buf integer
---@field source crewlog.Source
---@field entries crewlog.Entry[] those that are loaded, without their data
---@field counts integer[] lines of each of them
---@field levels (string|integer)[] fold levels by line
---@field head integer lines above the first entry
---@field total integer
---@field more_before boolean
---@field more_after boolean
---@field busy boolean
---@field ticket table of the last loading of the whole: an answer to what was asked before it is no news
---@field stale boolean something came while busy
---@field broken? crewlog.Break

---@type table<integer, crewlog.View>
M.views = {}

---@param session_id string
---@return crewlog.Source
local function session_source(session_id)
  local own ---@type crewlog.SessionInfo? of a session that is not among those that the sidebar has loaded
  return {
    title = function()
      local info = store.sessions[session_id] or own
      return info and text.one_line(info.name ~= "" and info.name or info.firstMessage, 120) or ""
    end,
    learn = function(done)
      if not store.sessions[session_id] then
        client.request("session/open", { sessionId = session_id }, function(_, result) -- what is wrong, the entries tell
          own = result and result.session
          done()
        end)
      end
    end,
    page = function(_, where, done)
      local params = {
        sessionId = session_id,
        before = where.before and where.before.id,
        after = where.after and where.after.id,
        limit = where.limit,
        maxBytes = PAGE_BYTES,
      }
      client.request("session/entries", params, function(err, result)
        if err then
          return done(err)
        end
        done(nil, { entries = result.entries, total = result.total, more = result.hasMore, leaf = result.leafId, broken = result.broken })
      end)
    end,
    whole = function(_, entry, done)
      local params = { sessionId = session_id, after = entry.parent_id, leafId = entry.id, limit = 1 }
      client.request("session/entries", params, function(err, result)
        done(err, result and result.entries[1])
      end)
    end,
  }
end

--- A transcript has messages without ids: their places are their ids.
---@param list_id string
---@param agent string
---@return crewlog.Source
local function transcript_source(list_id, agent)
  local function load(offset, limit, done)
    client.request("transcript/load", { listId = list_id, agent = agent, offset = offset, limit = limit }, function(err, result)
      if err then
        return done(err)
      end
      local entries = {}
      for i, message in ipairs(result.messages) do
        entries[i] = { id = tostring(offset + i), kind = "message", timestamp = message.timestamp or "", data = message }
      end
      done(nil, { entries = entries, total = result.total })
    end)
  end
  return {
    title = function()
      return text.one_line(agent, 120)
    end,
    page = function(_, where, done)
      if where.before then
        local stop = tonumber(where.before.id) - 1
        local from = math.max(0, stop - where.limit)
        return load(from, math.max(stop - from, 1), function(err, page)
          if page then
            page.more = from > 0
          end
          done(err, page)
        end)
      elseif where.after then
        local from = tonumber(where.after.id)
        return load(from, where.limit, function(err, page)
          if page then
            page.more = from + #page.entries < page.total
          end
          done(err, page)
        end)
      end
      load(0, 1, function(err, first)
        if err or first.total == 0 then
          if first then
            first.more = false
          end
          return done(err, first)
        end
        local from = math.max(0, first.total - where.limit)
        load(from, where.limit, function(err2, page)
          if page then
            page.more = from > 0
          end
          done(err2, page)
        end)
      end)
    end,
    whole = function(_, entry, done)
      load(tonumber(entry.id) - 1, 1, function(err, page)
        done(err, page and page.entries[1])
      end)
    end,
  }
end

---@param view crewlog.View
---@param ticket? table
---@return boolean # whether an answer to what was asked with that ticket counts
local function alive(view, ticket)
  return M.views[view.buf] == view and api.nvim_buf_is_loaded(view.buf) and (not ticket or view.ticket == ticket)
end

--- Writes lines into a buffer that users cannot change. `count` lines from `first` on are replaced.
---@param view crewlog.View
local function write(view, first, count, lines)
  vim.bo[view.buf].modifiable = true
  api.nvim_buf_set_lines(view.buf, first, first + count, false, lines)
  vim.bo[view.buf].modifiable = false
  vim.bo[view.buf].modified = false
end

--- Replaces a part of a list in place.
---@param list any[]
---@param first integer from 0
---@param count integer
---@param new any[]
local function splice(list, first, count, new)
  local tail = {}
  for i = first + count + 1, #list do
    tail[#tail + 1] = list[i]
  end
  for i = #list, first + 1, -1 do
    list[i] = nil
  end
  vim.list_extend(list, new)
  vim.list_extend(list, tail)
end

---@param entries crewlog.Entry[]
---@return string[] lines
---@return (string|integer)[] levels
---@return integer[] counts
---@return crewlog.Entry[] kept without their data
local function shown(entries)
  local lines, levels, counts, kept = {}, {}, {}, {}
  for i, entry in ipairs(entries) do
    local one = session_text.entry(entry)
    vim.list_extend(lines, one.lines)
    vim.list_extend(levels, one.levels)
    counts[i] = #one.lines
    kept[i] = { id = entry.id, kind = entry.kind, parent_id = entry.parent_id, timestamp = entry.timestamp }
  end
  return lines, levels, counts, kept
end

---@param view crewlog.View
local function head_lines(view)
  local title = view.source.title()
  local lines = { "# " .. (title ~= "" and title or text.one_line(vim.fs.basename(api.nvim_buf_get_name(view.buf)), 120)), "" }
  if view.broken then
    vim.list_extend(lines, { "> Earlier entries cannot be reached: " .. text.one_line(view.broken.reason), "" })
  elseif view.more_before then
    vim.list_extend(lines, { "> … earlier entries: scroll up to load them", "" })
  elseif #view.entries == 0 then
    vim.list_extend(lines, { "> Nothing was said yet.", "" })
  end
  return lines
end

---@param view crewlog.View
local function write_head(view)
  local lines = head_lines(view)
  if not vim.deep_equal(lines, api.nvim_buf_get_lines(view.buf, 0, view.head, false)) then
    local levels = {}
    for i = 1, #lines do
      levels[i] = 0
    end
    splice(view.levels, 0, view.head, levels) -- before the lines: they are folded as they are written
    write(view, 0, view.head, lines)
    view.head = #lines
  end
end

--- Runs `change` and keeps what each window shows where it is, or at the end where it follows.
---@param view crewlog.View
---@param inserted integer lines that `change` adds between the head and the first entry
---@param change fun()
local function steadily(view, inserted, change)
  local last, head = api.nvim_buf_line_count(view.buf), view.head
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(view.buf)) do
    views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  change()
  local now = api.nvim_buf_line_count(view.buf)
  local function moved(line)
    if line > head then
      return line - head + view.head + inserted
    elseif inserted > 0 then
      return view.head + inserted + 1 -- what was below the head, which does not go along
    end
    return math.min(line, view.head)
  end
  for win, saved in pairs(views) do
    if inserted == 0 and saved.lnum == last and last > head and config.options.session.follow and not view.more_after then
      if now ~= last then
        api.nvim_win_set_cursor(win, { now, 0 })
      end
    else
      local line = math.max(1, math.min(moved(saved.lnum), now))
      local top = math.max(1, math.min(moved(saved.topline), line))
      api.nvim_win_call(win, function()
        local present = vim.fn.winsaveview()
        if present.lnum ~= line or present.topline ~= top then
          vim.fn.winrestview({ lnum = line, col = saved.col, topline = top })
        end
      end)
    end
  end
end

---@param view crewlog.View
local function settle(view)
  view.busy = false
  if view.stale then
    view.stale = false
    M.follow(view)
  end
end

---@param view crewlog.View
---@param err crewlog.Error
local function fail(view, err)
  view.busy = false
  if #view.entries == 0 then
    write(view, 0, -1, { "> " .. text.one_line(err.message), "" })
    view.levels, view.head = { 0, 0 }, 2
  elseif err.data.kind ~= "disconnected" then
    vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
  end
end

--- Shows a page as the whole of what is loaded. A window that was at an entry stays there, others go to the end.
---@param view crewlog.View
---@param page crewlog.Page
---@param focus? string entry to go to
local function show(view, page, focus)
  local places = {} ---@type table<integer, { entry?: string, below: integer, saved: vim.fn.winsaveview.ret }>
  for _, win in ipairs(vim.fn.win_findbuf(view.buf)) do
    local saved = api.nvim_win_call(win, vim.fn.winsaveview)
    local at_end = saved.lnum == api.nvim_buf_line_count(view.buf)
    local entry = not at_end and M.entry_at(view, saved.lnum) or nil
    places[win] = { entry = entry and entry.id, below = entry and saved.lnum - M.line_of(view, entry.id) or 0, saved = saved }
  end
  local lines, levels, counts, kept = shown(page.entries)
  view.entries, view.counts, view.total, view.broken = kept, counts, page.total, page.broken
  local head = head_lines(view)
  view.head = #head
  view.levels = {}
  for i = 1, #head do
    view.levels[i] = 0
  end
  vim.list_extend(view.levels, levels)
  write(view, 0, -1, vim.list_extend(head, lines))
  for win, place in pairs(places) do
    local last = api.nvim_buf_line_count(view.buf)
    local known = not focus and place.entry and M.line_of(view, place.entry)
    local line = focus and M.line_of(view, focus) or known and math.min(known + place.below, last) or last
    api.nvim_win_set_cursor(win, { line, 0 })
    api.nvim_win_call(win, function()
      if focus then
        vim.cmd("normal! zvzt")
      elseif known then
        vim.fn.winrestview({ lnum = line, col = place.saved.col, topline = math.max(1, line - place.saved.lnum + place.saved.topline) })
      end
    end)
  end
  settle(view)
  M.emit_loaded(view)
end

--- Tells those who wait for a session to be there.
---@param view crewlog.View
function M.emit_loaded(view)
  store.emit("CrewlogSessionLoaded", { buf = view.buf, entries = #view.entries, total = view.total })
end

--- The line where an entry begins.
---@param view crewlog.View
---@param id string
---@return integer?
function M.line_of(view, id)
  local line = view.head + 1
  for i, entry in ipairs(view.entries) do
    if entry.id == id then
      return math.min(line, api.nvim_buf_line_count(view.buf))
    end
    line = line + view.counts[i]
  end
end

--- The entry that stands on a line.
---@param view crewlog.View
---@param line integer
---@return crewlog.Entry?
function M.entry_at(view, line)
  local stop = view.head
  for i, entry in ipairs(view.entries) do
    stop = stop + view.counts[i]
    if line <= stop then
      return line > view.head and entry or nil
    end
  end
end

--- Loads the end, or the part around an entry.
---@param view crewlog.View
---@param focus? string
function M.load(view, focus)
  local ticket = {}
  view.busy, view.stale, view.ticket = true, false, ticket
  local limit = config.options.session.page
  if not focus then
    view.source:page({ limit = limit }, function(err, page)
      if not alive(view, ticket) then
        return
      elseif err then
        return fail(view, err)
      end
      view.more_before, view.more_after = page.more, false
      show(view, page)
    end)
    return
  end
  local half = math.ceil(limit / 2)
  view.source:page({ before = { id = focus }, limit = half }, function(err, earlier)
    if not alive(view, ticket) then
      return
    elseif err or #earlier.entries == 0 then
      return M.load(view)
    end
    view.source:page({ after = earlier.entries[#earlier.entries], limit = half }, function(err2, later)
      if not alive(view, ticket) then
        return
      elseif err2 then
        return fail(view, err2)
      end
      view.more_before, view.more_after = earlier.more, later.more
      later.entries = vim.list_extend(earlier.entries, later.entries)
      show(view, later, focus)
    end)
  end)
end

--- Loads the page before what is there.
---@param view crewlog.View
---@param limit? integer entries
---@param done? fun() where it could be loaded
function M.load_earlier(view, limit, done)
  if view.busy or not view.more_before then
    return
  end
  view.busy = true
  local ticket = view.ticket
  view.source:page({ before = view.entries[1], limit = limit or config.options.session.page }, function(err, page)
    if not alive(view, ticket) then
      if done and alive(view) then -- all was loaded anew meanwhile: what is to be done then is still to be done
        vim.schedule(done)
      end
      return
    elseif err then
      return fail(view, err)
    end
    local lines, levels, counts, kept = shown(page.entries)
    steadily(view, #lines, function()
      splice(view.levels, view.head, 0, levels)
      write(view, view.head, 0, lines)
      view.more_before, view.broken, view.total = page.more, page.broken, page.total
      view.counts, view.entries = vim.list_extend(counts, view.counts), vim.list_extend(kept, view.entries)
      write_head(view)
    end)
    settle(view)
    M.emit_loaded(view)
    if done then
      done()
    end
  end)
end

local ALL_PAGE = 5000 -- entries

--- Loads all that is before, and goes to the beginning with the window that asked.
---@param view crewlog.View
---@param win integer
local function to_the_beginning(view, win)
  if not view.more_before then
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == view.buf then
      api.nvim_win_set_cursor(win, { 1, 0 })
    end
  elseif view.busy then
    vim.defer_fn(function()
      if alive(view) then
        to_the_beginning(view, win)
      end
    end, 20)
  else
    M.load_earlier(view, ALL_PAGE, function()
      to_the_beginning(view, win)
    end)
  end
end

---@param view crewlog.View
---@param page crewlog.Page
local function append(view, page)
  local lines, levels, counts, kept = shown(page.entries)
  steadily(view, 0, function()
    local last = api.nvim_buf_line_count(view.buf)
    view.more_after, view.total = page.more, page.total
    vim.list_extend(view.entries, kept)
    vim.list_extend(view.counts, counts)
    vim.list_extend(view.levels, levels)
    write(view, last, 0, lines)
    write_head(view)
  end)
  view.busy = false
  M.emit_loaded(view)
end

--- Loads the page after what is there.
---@param view crewlog.View
function M.load_later(view)
  local last = view.entries[#view.entries]
  if view.busy then
    view.stale = true
    return
  elseif not last then
    return M.load(view)
  end
  view.busy = true
  local ticket = view.ticket
  view.source:page({ after = last, limit = config.options.session.page }, function(err, page)
    if not alive(view, ticket) then
      return
    elseif err and (err.data.kind == "entryNotFound" or err.data.kind == "invalidParams") then
      return M.load(view) -- another branch: the end is elsewhere now
    elseif err then
      return fail(view, err)
    end
    if #page.entries > 0 then
      append(view, page)
    end
    view.busy = false
    if page.more or view.stale then
      view.stale = false
      M.follow(view)
    end
  end)
end

--- Takes in what was added at the end, where the end is shown.
---@param view crewlog.View
function M.follow(view)
  if not view.more_after then
    M.load_later(view)
  end
end

--- Loads more where a window comes near an edge of what is there.
---@param view crewlog.View
---@param win integer
local function look(view, win)
  local top, bottom = unpack(api.nvim_win_call(win, function()
    return { vim.fn.line("w0"), vim.fn.line("w$") }
  end))
  if view.more_before and top <= view.head + 1 then
    M.load_earlier(view)
  elseif view.more_after and bottom >= api.nvim_buf_line_count(view.buf) then
    M.load_later(view)
  end
end

--- For 'foldexpr'.
function M.foldexpr()
  local view = M.views[api.nvim_get_current_buf()]
  return view and view.levels[vim.v.lnum] or 0
end

--- For 'foldtext'.
function M.foldtext()
  local line = vim.fn.getline(vim.v.foldstart)
  local plain = line:gsub("^#+ ", ""):gsub("%*%*(.-)%*%*", "%1"):gsub("^%*(.*)%*$", "%1")
  return ("%s %s  (%d lines)"):format(require("crewlog.icons").get().closed, plain, vim.v.foldend - vim.v.foldstart + 1)
end

local function set_window_options()
  vim.opt_local.foldmethod = "expr"
  vim.opt_local.foldexpr = "v:lua.require'crewlog.session'.foldexpr()"
  vim.opt_local.foldtext = "v:lua.require'crewlog.session'.foldtext()"
  vim.opt_local.foldlevel = config.options.session.folded and 1 or 99
  vim.opt_local.foldenable = true
  vim.opt_local.wrap = true
  vim.opt_local.linebreak = true
end

--- Opens the entry under the cursor as the JSON that is stored.
---@param view crewlog.View
local function open_entry(view)
  local entry = M.entry_at(view, api.nvim_win_get_cursor(0)[1])
  if not entry then
    return
  end
  view.source:whole(entry, function(err, whole)
    if err or not whole then
      return vim.notify("crewlog: " .. (err and err.message or "the entry is gone"), vim.log.levels.ERROR)
    end
    vim.cmd("botright new")
    local buf = api.nvim_get_current_buf()
    vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = "nofile", "wipe", false
    api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(session_text.json(whole), "\n", { plain = true }))
    vim.bo[buf].modifiable = false
    vim.bo[buf].filetype = "json"
  end)
end

---@param view crewlog.View
---@param step 1|-1
local function jump(view, step)
  local line = api.nvim_win_get_cursor(0)[1] + step
  while line >= 1 and line <= #view.levels do
    if view.levels[line] == ">1" then
      vim.cmd("normal! m'")
      api.nvim_win_set_cursor(0, { line, 0 })
      return
    end
    line = line + step
  end
end

---@type { [1]: string, [2]: string, [3]: fun(view: crewlog.View) }[] keys in these buffers
M.KEYS = {
  { "<CR>", "open the entry as it is stored", open_entry },
  {
    "]]",
    "next message",
    function(view)
      jump(view, 1)
    end,
  },
  {
    "[[",
    "previous message",
    function(view)
      jump(view, -1)
    end,
  },
  {
    "g[",
    "the beginning: loads all of it",
    function(view)
      vim.cmd("normal! m'")
      to_the_beginning(view, api.nvim_get_current_win())
    end,
  },
  {
    "gR",
    "load it anew",
    function(view)
      M.load(view)
    end,
  },
}

local SOURCES = { session = session_source, transcript = transcript_source }

--- Fills a buffer whose name is `crewlog://session/…` or `crewlog://transcript/…`.
---@param buf integer
function M.read(buf)
  local kind, first, second = names.parse(api.nvim_buf_get_name(buf))
  local known = M.views[buf]
  if known then -- `:edit`
    known.entries, known.counts, known.levels, known.head = {}, {}, {}, 0
    return M.load(known)
  end
  local view = {
    buf = buf,
    source = SOURCES[kind](first, second),
    entries = {},
    counts = {},
    levels = {},
    head = 0,
    total = 0,
    more_before = false,
    more_after = false,
    busy = false,
    stale = false,
    ticket = {},
  }
  M.views[buf] = view
  vim.bo[buf].buftype, vim.bo[buf].swapfile, vim.bo[buf].undolevels = "nofile", false, -1
  vim.bo[buf].bufhidden = "hide"
  write(view, 0, -1, { "loading …" })
  vim.bo[buf].filetype = "markdown"
  set_window_options()
  for _, key in ipairs(M.KEYS) do
    vim.keymap.set("n", key[1], function()
      key[3](view)
    end, { buffer = buf, nowait = true, desc = "crewlog: " .. key[2] })
  end
  local group = api.nvim_create_augroup("crewlog.session." .. buf, {})
  api.nvim_create_autocmd("BufWinEnter", { group = group, buffer = buf, callback = set_window_options })
  api.nvim_create_autocmd({ "WinScrolled", "CursorMoved" }, {
    group = group,
    callback = function()
      for _, win in ipairs(vim.fn.win_findbuf(buf)) do
        look(view, win)
      end
    end,
  })
  api.nvim_create_autocmd({ "BufEnter", "FocusGained" }, {
    group = group,
    buffer = buf,
    callback = function()
      if kind == "transcript" and not view.busy then
        M.follow(view) -- transcripts are not told of
      end
    end,
  })
  api.nvim_create_autocmd({ "BufUnload", "BufWipeout" }, {
    group = group,
    buffer = buf,
    callback = function()
      M.views[buf] = nil
      pcall(api.nvim_del_augroup_by_id, group)
    end,
  })
  local focus = M.focus and M.focus.name == api.nvim_buf_get_name(buf) and M.focus.entry or nil
  M.focus = nil
  M.load(view, focus)
  if view.source.learn then
    view.source.learn(function()
      if alive(view) and #view.entries > 0 then
        steadily(view, 0, function()
          write_head(view)
        end)
      end
    end)
  end
end

---@type { name: string, entry: string }? where the buffer that is opened next is to begin
M.focus = nil

--- Opens a session, at its end or at an entry.
---@param session_id string
---@param entry_id? string
---@param how? "edit"|"split"|"vsplit"|"tab"
function M.open(session_id, entry_id, how)
  local name = names.session(session_id)
  M.focus = entry_id and { name = name, entry = entry_id } or nil
  require("crewlog.windows").open(name, how)
  local view = M.views[api.nvim_get_current_buf()]
  if view and M.focus then -- it was not read anew
    M.focus = nil
    local line = M.line_of(view, entry_id)
    if line then
      api.nvim_win_set_cursor(0, { line, 0 })
      vim.cmd("normal! zvzt")
    else
      M.load(view, entry_id)
    end
  end
end

store.listen(function(topic, data)
  if topic ~= "sessions" then
    return
  end
  for buf, view in pairs(M.views) do
    local kind, id = names.parse(api.nvim_buf_get_name(buf))
    if kind == "session" and #view.entries > 0 and not view.busy then
      steadily(view, 0, function()
        write_head(view) -- its name
      end)
    end
    if kind == "session" and data.session and data.session.id == id then
      if data.change == "replaced" then
        M.load(view)
      elseif data.change == "deleted" then
        vim.notify("crewlog: session " .. id .. " was deleted; what was loaded of it stays here", vim.log.levels.WARN)
      else
        M.follow(view)
      end
    end
  end
end)

client.on_ready(function(watched)
  for _, view in pairs(watched and {} or M.views) do
    if view.busy then
      view.stale = true
    elseif #view.entries == 0 then
      M.load(view)
    else
      M.follow(view) -- what was said while the server was away
    end
  end
end)

return M
