--- Full text over all sessions.
local client = require("crewlog.client")
local text = require("crewlog.text")

local M = {}

M.LIMIT = 100

--- Asks for hits, the best first.
---@param query string words that must all be there
---@param opts? { all_projects?: boolean, limit?: integer }
---@param done fun(err?: crewlog.Error, hits?: crewlog.SearchHit[])
---@return fun() cancel
function M.query(query, opts, done)
  opts = opts or {}
  local params = { query = query, allProjects = opts.all_projects, limit = opts.limit or M.LIMIT }
  return client.request("session/search", params, function(err, result)
    done(err, result and result.hits)
  end)
end

--- The same for pickers that ask in a coroutine or at once.
---@param query string
---@param opts? { all_projects?: boolean, limit?: integer }
---@return crewlog.SearchHit[]
function M.query_sync(query, opts)
  if vim.trim(query) == "" then
    return {}
  end
  opts = opts or {}
  local params = { query = query, allProjects = opts.all_projects, limit = opts.limit or M.LIMIT }
  local err, result = client.request_sync("session/search", params, 5000)
  if err then
    vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
    return {}
  end
  return result.hits
end

--- A hit on one line.
---@param hit crewlog.SearchHit
---@return string
function M.format(hit)
  local info = hit.session
  local name = text.one_line(info.name ~= "" and info.name or info.firstMessage ~= "" and info.firstMessage or info.id, 40)
  return ("%s │ %s │ %s"):format(name, text.ago(hit.timestamp), text.one_line(hit.snippet, 160))
end

--- Opens the session at the hit.
---@param hit crewlog.SearchHit
---@param how? "edit"|"split"|"vsplit"|"tab"
function M.open(hit, how)
  require("crewlog.session").open(hit.session.id, hit.entryId, how)
end

--- Searches and lets the user pick a hit.
---@param query string
---@param opts? { all_projects?: boolean }
function M.select(query, opts)
  M.query(query, opts, function(err, hits)
    if err then
      return vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
    elseif #hits == 0 then
      return vim.notify(("crewlog: nothing was found for %q"):format(query))
    end
    vim.ui.select(hits, { prompt = "Sessions with " .. query, format_item = M.format, kind = "crewlog_search" }, function(hit)
      if hit then
        M.open(hit)
      end
    end)
  end)
end

--- Asks what to search for, in the picker of the option `picker`.
---@param opts? crewlog.pickers.Opts
function M.prompt(opts)
  opts = opts or {}
  local picker, trouble = require("crewlog.pickers").choose()
  if picker then
    return picker.open(opts)
  elseif trouble then
    vim.notify("crewlog: " .. trouble, vim.log.levels.WARN)
  end
  if opts.query then
    return M.select(opts.query, opts)
  end
  vim.ui.input({ prompt = "Search sessions: " }, function(query)
    if query and vim.trim(query) ~= "" then
      M.select(query, opts)
    end
  end)
end

return M
