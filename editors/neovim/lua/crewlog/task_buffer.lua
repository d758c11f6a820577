--- A task in a buffer: `crewlog://task/<list>/<id>`, or `…/new` for one that `:w` adds.
---
--- Saving sends only what the user changed. Where somebody else changed the same field meanwhile, the user is asked; whatever the answer,
--- the buffer keeps the user's text until it is saved.
local client = require("crewlog.client")
local form = require("crewlog.task_form")
local names = require("crewlog.names")
local store = require("crewlog.store")
local text = require("crewlog.text")

local M = {}

local api = vim.api

local LONG_LINE = 10000 -- bytes
local AS_LONG_AS_IT_TAKES = 2 ^ 31 - 1 -- milliseconds; CTRL-C ends it

---@class crewlog.Draft
---@field list_id string
---@field id string "new" for one that is not there yet
---@field base crewlog.TaskFields what the user began with
---@field state "loading"|"loaded"|"failed" before it is loaded, nothing can be typed
---@field told? boolean that it was changed by somebody else

---@type table<integer, crewlog.Draft>
M.drafts = {}

---@param message string
local function complain(message)
  vim.notify("crewlog: " .. message, vim.log.levels.ERROR)
end

--- Of an error of what should have been saved.
---@param err crewlog.Error
---@param in_doubt string where it may have been saved all the same
local function complain_unsaved(err, in_doubt)
  local is_in_doubt = vim.list_contains({ "disconnected", "interrupted" }, vim.tbl_get(err, "data", "kind"))
  complain(err.message .. "; " .. (is_in_doubt and in_doubt or "nothing was saved"))
end

---@param method crewlog.Method
---@param params table
---@return crewlog.Error? err
---@return any result
local function ask(method, params)
  return client.request_sync(method, params, AS_LONG_AS_IT_TAKES)
end

---@param buf integer
---@param fields crewlog.TaskFields
local function fill(buf, fields)
  local lines = form.lines(fields)
  vim.bo[buf].modifiable = true
  if not vim.deep_equal(lines, api.nvim_buf_get_lines(buf, 0, -1, false)) then
    local views = {}
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
    end
    if vim.iter(lines):any(function(line)
      return #line > LONG_LINE
    end) then
      vim.bo[buf].syntax = "OFF" -- its patterns fail on such a line, again and again
    end
    api.nvim_buf_set_lines(buf, 0, -1, false, lines)
    for win, view in pairs(views) do
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
  vim.bo[buf].modified = false
end

--- Fills without an undo step that would lead back to nothing.
---@param buf integer
---@param fields crewlog.TaskFields
local function first_fill(buf, fields)
  local levels = vim.bo[buf].undolevels
  vim.bo[buf].undolevels = -1
  fill(buf, fields)
  vim.bo[buf].undolevels = levels
end

---@param buf integer
---@param draft crewlog.Draft
---@param task crewlog.Task
local function loaded(buf, draft, task)
  draft.state, draft.base = "loaded", form.fields(task)
  first_fill(buf, draft.base)
  store.emit("CrewlogTaskLoaded", { buf = buf, listId = draft.list_id, id = draft.id })
end

--- What comes first fills the buffer, this answer or a change that is told: what came second would undo what the user has typed since.
---@param buf integer
---@param draft crewlog.Draft
local function load(buf, draft)
  draft.state = "loading"
  client.request("task/get", { listId = draft.list_id, id = draft.id }, function(err, task)
    if M.drafts[buf] ~= draft or draft.state ~= "loading" then
      return
    elseif task then
      return loaded(buf, draft, task)
    end
    draft.state = "failed"
    complain(err and err.message or ("there is no task #%s in %s"):format(text.one_line(draft.id, 30), text.one_line(draft.list_id, 60)))
  end)
end

---@param buf integer
function M.read(buf)
  local _, list_id, id = names.parse(api.nvim_buf_get_name(buf))
  local draft = { list_id = list_id, id = id, base = form.fields(nil), state = "loading" } ---@type crewlog.Draft
  M.drafts[buf] = draft
  vim.bo[buf].buftype, vim.bo[buf].swapfile, vim.bo[buf].bufhidden = "acwrite", false, "hide"
  vim.bo[buf].fileformat = "unix"
  api.nvim_create_autocmd("BufUnload", {
    buffer = buf,
    once = true,
    callback = function()
      M.drafts[buf] = nil
    end,
  })
  vim.bo[buf].filetype = "markdown"
  if id == "new" then
    draft.state = "loaded"
    first_fill(buf, draft.base)
    vim.bo[buf].modified = false
    if api.nvim_get_current_buf() == buf then
      api.nvim_win_set_cursor(0, { 2, 8 })
    end
    return
  end
  vim.bo[buf].modifiable = false
  load(buf, draft)
end

--- Shows the task as it is now beside the user's text, and lets the next `:w` save over it.
---@param buf integer
---@param draft crewlog.Draft
---@param theirs crewlog.TaskFields
local function compare(buf, draft, theirs)
  draft.base = theirs
  vim.schedule(function()
    local win = vim.fn.bufwinid(buf)
    if win == -1 then
      return
    end
    api.nvim_set_current_win(win)
    vim.cmd("diffthis")
    vim.cmd("rightbelow vertical new")
    local other = api.nvim_get_current_buf()
    vim.bo[other].buftype, vim.bo[other].bufhidden, vim.bo[other].swapfile = "nofile", "wipe", false
    api.nvim_buf_set_lines(other, 0, -1, false, form.lines(theirs))
    vim.bo[other].modifiable = false
    vim.bo[other].filetype = "markdown"
    pcall(api.nvim_buf_set_name, other, ("crewlog-theirs://%s/%s"):format(draft.list_id, draft.id))
    vim.cmd("diffthis")
    api.nvim_set_current_win(win)
  end)
end

---@param buf integer
---@param draft crewlog.Draft
---@param task crewlog.Task
---@param tick integer of the text that was saved
local function saved(buf, draft, task, tick)
  draft.base, draft.told = form.fields(task), nil
  if api.nvim_buf_get_changedtick(buf) == tick then -- else the text has gone on meanwhile, and is to be saved itself
    fill(buf, draft.base)
  end
  vim.cmd.redraw() -- a question may stand there still; with it, this would ask for <Enter>
  api.nvim_echo({ { ("#%s saved"):format(task.id) } }, false, {})
end

---@param buf integer
---@param draft crewlog.Draft
---@param fields crewlog.TaskFields
---@param tick integer
local function create(buf, draft, fields, tick)
  local params = {
    listId = draft.list_id,
    subject = fields.subject,
    description = fields.description,
    activeForm = fields.activeForm,
    blockedBy = #fields.blockedBy > 0 and fields.blockedBy or nil,
    blocks = #fields.blocks > 0 and fields.blocks or nil,
  }
  local err, task = ask("task/create", params)
  if err then
    return complain_unsaved(err, "it may have been added: look before :w adds it again")
  end
  draft.id, draft.base = task.id, form.fields(task)
  vim.bo[buf].modified = false
  pcall(api.nvim_buf_set_name, buf, names.task(draft.list_id, task.id))
  -- Status and owner are no part of a new task; they come second, and stay in the buffer where they are refused.
  local change = form.merge(draft.base, fields, draft.base)
  if next(change) then
    local err2, changed = ask("task/update", vim.tbl_extend("force", change, { listId = draft.list_id, id = task.id }))
    if err2 then
      vim.bo[buf].modified = true
      return complain(("#%s was added, but %s"):format(task.id, err2.message))
    end
    task = changed
  end
  saved(buf, draft, task, tick)
end

--- For `:w`. What was not saved stays in the buffer, which stays modified.
---@param buf integer
---@param force boolean `:w!` saves over what somebody else changed
function M.write(buf, force)
  local draft = M.drafts[buf]
  if not draft then
    return complain("the buffer holds no task")
  end
  local tick = api.nvim_buf_get_changedtick(buf)
  local lines = api.nvim_buf_get_lines(buf, 0, -1, false)
  local mine, trouble = form.parse(lines, draft.base)
  if not mine then
    return complain(trouble .. "; nothing was saved")
  elseif not text.is_utf8(table.concat(lines, "\n")) then
    return complain("the text is not UTF-8; nothing was saved")
  elseif draft.id == "new" then
    return create(buf, draft, mine, tick)
  end
  local err, task = ask("task/get", { listId = draft.list_id, id = draft.id })
  if err then
    return complain(err.message .. "; nothing was saved")
  elseif not task then
    local question = ("Task #%s was deleted by somebody else. Add it anew?"):format(draft.id)
    if force or vim.fn.confirm(question, "&Yes\n&No", 2) == 1 then
      create(buf, draft, mine, tick)
    end
    return
  end
  local theirs = form.fields(task)
  local change, conflicts = form.merge(draft.base, mine, theirs)
  if #conflicts > 0 and not force then
    local question = ("Task #%s was changed by somebody else: %s."):format(draft.id, table.concat(conflicts, ", "))
    local answer = vim.fn.confirm(question, "&Compare\n&Save mine\nCa&ncel", 1)
    if answer == 1 then
      compare(buf, draft, theirs)
    end
    if answer ~= 2 then
      return
    end
  end
  if next(change) then
    err, task = ask("task/update", vim.tbl_extend("force", change, { listId = draft.list_id, id = draft.id }))
    if err then
      return complain_unsaved(err, "it may have been saved, :w makes sure")
    end
  end
  saved(buf, draft, task, tick)
end

--- A task changed: what the user has not touched follows; what was touched is kept, and the user is told once.
---@param data crewlog.TaskDidChange
local function on_change(data)
  for buf, draft in pairs(M.drafts) do
    if draft.list_id == data.listId and draft.id ~= "new" and api.nvim_buf_is_loaded(buf) then
      local task = vim.iter(data.changed or {}):find(function(task)
        return task.id == draft.id
      end)
      local gone = vim.list_contains(data.removed or {}, draft.id)
      if draft.state ~= "loaded" then
        if task then
          loaded(buf, draft, task)
        end
      elseif task and not vim.bo[buf].modified and not vim.deep_equal(form.fields(task), draft.base) then
        draft.base = form.fields(task)
        fill(buf, draft.base)
      elseif (gone or (task and not vim.deep_equal(form.fields(task), draft.base))) and not draft.told then
        draft.told = true
        local what = gone and "deleted" or "changed"
        vim.notify(("crewlog: #%s was %s by somebody else; your text is kept, and :w compares"):format(draft.id, what), vim.log.levels.WARN)
      end
    end
  end
end

client.on_ready(function(watched)
  for buf, draft in pairs(watched and {} or M.drafts) do
    if draft.state == "failed" then
      load(buf, draft)
    elseif draft.state == "loaded" and draft.id ~= "new" then
      client.request("task/get", { listId = draft.list_id, id = draft.id }, function(err, task)
        if not err then
          on_change({ listId = draft.list_id, changed = { task }, removed = task and {} or { draft.id } })
        end
      end)
    end
  end
end)

store.listen(function(topic, data)
  if topic == "tasks" then
    on_change(data)
  end
end)

return M
