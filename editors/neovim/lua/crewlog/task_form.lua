--- A task as text that is edited, and what was changed in it. Pure.
local M = {}

---@class crewlog.TaskFields what can be edited
---@field subject string
---@field status string
---@field owner string
---@field activeForm string
---@field blockedBy string[]
---@field blocks string[]
---@field description string

local TEXTS = { "subject", "status", "owner", "activeForm" }
local LISTS = { blockedBy = true, blocks = true }
local ORDER = { "subject", "status", "owner", "activeForm", "blockedBy", "blocks" }

---@param task crewlog.Task?
---@return crewlog.TaskFields
function M.fields(task)
  task = task or {} ---@diagnostic disable-line: missing-fields
  return {
    subject = task.subject or "",
    status = task.status or "pending",
    owner = task.owner or "",
    activeForm = task.activeForm or "",
    blockedBy = task.blockedBy or {},
    blocks = task.blocks or {},
    description = task.description or "",
  }
end

--- A value on one line; as a JSON string where it would not come back equal.
---@param value string
local function written(value)
  if value:find("[%c\127]") or value:find('^["%s]') or value:find("%s$") then
    return vim.json.encode(value)
  end
  return value
end

---@param fields crewlog.TaskFields
---@return string[]
function M.lines(fields)
  local lines = { "---" }
  for _, name in ipairs(ORDER) do
    local value = LISTS[name] and table.concat(fields[name], " ") or written(fields[name])
    lines[#lines + 1] = vim.trim(name .. ": " .. value)
  end
  lines[#lines + 1] = "---"
  return vim.list_extend(lines, vim.split(fields.description, "\n", { plain = true }))
end

---@param value string
---@return string? value
---@return string? trouble
local function read(value)
  if value:sub(1, 1) ~= '"' then
    return value
  end
  local ok, decoded = pcall(vim.json.decode, value)
  if not ok or type(decoded) ~= "string" then
    return nil, "a value that begins with a quote must be a JSON string"
  end
  return decoded
end

--- Reads the text back; fields whose line is gone are as in `base`.
---@param lines string[]
---@param base crewlog.TaskFields
---@return crewlog.TaskFields? fields
---@return string? trouble with the line
function M.parse(lines, base)
  if lines[1] ~= "---" then
    return nil, "line 1: `---` must stand there, above the fields"
  end
  local fields = vim.deepcopy(base)
  local stop
  for i = 2, #lines do
    if lines[i] == "---" then
      stop = i
      break
    end
    local name, value = lines[i]:match("^(%a+):%s*(.-)%s*$")
    if name and LISTS[name] then
      fields[name] = vim.tbl_map(function(id)
        return (id:gsub("^#", ""))
      end, vim.split(value, "[%s,]+", { trimempty = true }))
    elseif name and vim.list_contains(TEXTS, name) then
      local decoded, trouble = read(value)
      if not decoded then
        return nil, ("line %d: %s"):format(i, trouble)
      end
      fields[name] = decoded
    elseif vim.trim(lines[i]) ~= "" then
      return nil, ("line %d: not one of the fields %s"):format(i, table.concat(ORDER, ", "))
    end
  end
  if not stop then
    return nil, "a second `---` must stand between the fields and the description"
  elseif vim.trim(fields.subject) == "" then
    return nil, "the subject is empty"
  end
  fields.description = table.concat(lines, "\n", stop + 1)
  return fields
end

---@param list string[]
---@param other string[]
---@return string[] # those of `list` that are not in `other`
local function without(list, other)
  return vim.tbl_filter(function(id)
    return not vim.list_contains(other, id)
  end, list)
end

local ADD = { blockedBy = "addBlockedBy", blocks = "addBlocks" }
local REMOVE = { blockedBy = "removeBlockedBy", blocks = "removeBlocks" }

--- What is to be asked of the server so that what the user changed is changed, and nothing else.
---@param base crewlog.TaskFields as it was when the user began
---@param mine crewlog.TaskFields as the user left it
---@param theirs crewlog.TaskFields as it is now
---@return table change params of `task/update`, empty when nothing is to be done
---@return string[] conflicts fields that both changed, to different values
function M.merge(base, mine, theirs)
  local change, conflicts = {}, {}
  for _, name in ipairs({ "subject", "status", "owner", "activeForm", "description" }) do
    if mine[name] ~= base[name] and mine[name] ~= theirs[name] then
      change[name] = mine[name]
      if theirs[name] ~= base[name] then
        conflicts[#conflicts + 1] = name
      end
    end
  end
  for name in vim.spairs(LISTS) do
    local added = without(without(mine[name], base[name]), theirs[name])
    local removed = vim.tbl_filter(function(id)
      return vim.list_contains(theirs[name], id)
    end, without(base[name], mine[name]))
    change[ADD[name]] = #added > 0 and added or nil
    change[REMOVE[name]] = #removed > 0 and removed or nil
  end
  return change, conflicts
end

return M
