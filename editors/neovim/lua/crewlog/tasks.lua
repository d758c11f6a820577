--- What users do with tasks. Each function asks the server and tells what it refused; `done(err, task)` is optional.
local client = require("crewlog.client")
local config = require("crewlog.config")

local M = {}

---@alias crewlog.Done fun(err?: crewlog.Error, result?: any)

--- Tells the user of an error.
---@param err crewlog.Error
function M.tell(err)
  vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
end

---@param method crewlog.Method
---@param params table
---@param done? crewlog.Done
local function ask(method, params, done)
  client.request(method, params, function(err, result)
    if err then
      M.tell(err)
    end
    if done then
      done(err, result)
    end
  end)
end

--- Takes a task.
---@param list_id string
---@param id string
---@param done? crewlog.Done
function M.claim(list_id, id, done)
  ask("task/claim", { listId = list_id, id = id, owner = config.owner(), leaseMs = config.options.tasks.lease_ms }, done)
end

--- Gives a task back, whoever holds it: a person may take it from an agent that is gone.
---@param list_id string
---@param id string
---@param owner string who holds it
---@param done? crewlog.Done
function M.release(list_id, id, owner, done)
  ask("task/release", { listId = list_id, id = id, owner = owner }, done)
end

---@param list_id string
---@param id string
---@param done? crewlog.Done
function M.complete(list_id, id, done)
  ask("task/update", { listId = list_id, id = id, status = "completed" }, done)
end

--- Makes a completed task pending again.
---@param list_id string
---@param id string
---@param done? crewlog.Done
function M.reopen(list_id, id, done)
  ask("task/update", { listId = list_id, id = id, status = "pending" }, done)
end

---@param list_id string
---@param id string
---@param subject string
---@param done? crewlog.Done
function M.rename(list_id, id, subject, done)
  ask("task/update", { listId = list_id, id = id, subject = subject }, done)
end

---@param list_id string
---@param id string
---@param done? crewlog.Done
function M.delete(list_id, id, done)
  ask("task/delete", { listId = list_id, id = id }, done)
end

--- Adds a task.
---@param list_id string
---@param fields { subject: string, description?: string, activeForm?: string, blocks?: string[], blockedBy?: string[] }
---@param done? crewlog.Done
function M.create(list_id, fields, done)
  ask("task/create", vim.tbl_extend("force", fields, { listId = list_id }), done)
end

--- Changes what tasks a task waits for.
---@param list_id string
---@param id string
---@param change { addBlockedBy?: string[], removeBlockedBy?: string[], addBlocks?: string[], removeBlocks?: string[] }
---@param done? crewlog.Done
function M.set_blockers(list_id, id, change, done)
  ask("task/update", vim.tbl_extend("force", change, { listId = list_id, id = id }), done)
end

return M
