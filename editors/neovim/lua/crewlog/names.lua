--- The names of our buffers: `crewlog://session/<id>`, `crewlog://task/<list>/<id>`, `crewlog://transcript/<list>/<agent>`.
local M = {}

---@param part string
local function encode(part)
  return (part:gsub("[^%w%-_.~]", function(char)
    return ("%%%02X"):format(char:byte())
  end))
end

---@param part string
local function decode(part)
  return (part:gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

---@param kind string
---@param ... string
local function join(kind, ...)
  return "crewlog://" .. table.concat({ kind, unpack(vim.tbl_map(encode, { ... })) }, "/")
end

---@param session_id string
function M.session(session_id)
  return join("session", session_id)
end

---@param list_id string
---@param id string a task's, or "new"
function M.task(list_id, id)
  return join("task", list_id, id)
end

---@param list_id string
---@param agent string
function M.transcript(list_id, agent)
  return join("transcript", list_id, agent)
end

local PARTS = { session = 1, task = 2, transcript = 2 }

--- What a buffer's name stands for.
---@param name string
---@return string? kind
---@return string ... parts, decoded
function M.parse(name)
  local kind, rest = name:match("^crewlog://(%w+)/(.+)$")
  local parts = rest and vim.tbl_map(decode, vim.split(rest, "/", { plain = true })) or {}
  if not kind or #parts ~= PARTS[kind] or vim.list_contains(parts, "") then
    return nil
  end
  return kind, unpack(parts)
end

return M
