--- Entries of a session as Markdown lines with fold levels. Pure.
local text = require("crewlog.text")

local M = {}

---@class crewlog.Shown
---@field lines string[]
---@field levels (string|integer)[] one for each line, as `foldexpr` gives them

local BLOCK_LINES = 2000 -- of one tool result; the whole is a key away

---@param out crewlog.Shown
---@param line string
---@param level string|integer
local function put(out, line, level)
  out.lines[#out.lines + 1] = line
  out.levels[#out.levels + 1] = level
end

---@param out crewlog.Shown
---@param lines string[]
---@param level integer
local function put_all(out, lines, level)
  for i = 1, math.min(#lines, BLOCK_LINES) do
    put(out, lines[i], level)
  end
  if #lines > BLOCK_LINES then
    put(out, ("… (%d more lines)"):format(#lines - BLOCK_LINES), level)
  end
end

--- A code fence that what it holds cannot close.
---@param lines string[]
local function fence_for(lines)
  local longest = 2
  for _, line in ipairs(lines) do
    local ticks = line:match("^%s*(```+)")
    longest = math.max(longest, ticks and #ticks or 0)
  end
  return ("`"):rep(longest + 1)
end

--- A part that begins folded.
---@param out crewlog.Shown
---@param title string
---@param body string[]
---@param language? string nil for prose
local function put_fold(out, title, body, language)
  put(out, title, ">2")
  if language then
    local fence = fence_for(body)
    put(out, fence .. language, 2)
    put_all(out, body, 2)
    put(out, fence, 2)
  else
    put(out, "", 2)
    put_all(out, body, 2)
  end
  put(out, "", 1)
end

---@param value any
local function is_object(value)
  return type(value) == "table"
end

local ARGUMENTS = { "command", "cmd", "file_path", "path", "pattern", "query", "url", "description", "prompt" }

--- What a tool call is about, in a few words.
---@param args any
local function about(args)
  if type(args) == "string" then
    return text.one_line(args, 80)
  elseif not is_object(args) then
    return ""
  end
  for _, name in ipairs(ARGUMENTS) do
    if type(args[name]) == "string" and args[name] ~= "" then
      return text.one_line(args[name], 80)
    end
  end
  for _, value in vim.spairs(args) do
    if type(value) == "string" then
      return text.one_line(value, 80)
    end
  end
  return ""
end

--- A value as indented JSON.
---@param value any
---@param indent? string
---@return string
function M.json(value, indent)
  indent = indent or ""
  if not is_object(value) then
    return vim.json.encode(value)
  end
  local deeper = indent .. "  "
  local parts = {}
  if vim.islist(value) and (#value > 0 or getmetatable(value) == nil) then
    for _, item in ipairs(value) do
      parts[#parts + 1] = deeper .. M.json(item, deeper)
    end
    return #parts == 0 and (next(value) == nil and "{}" or "[]") or "[\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "]"
  end
  for name, item in vim.spairs(value) do
    parts[#parts + 1] = deeper .. vim.json.encode(tostring(name)) .. ": " .. M.json(item, deeper)
  end
  return #parts == 0 and "{}" or "{\n" .. table.concat(parts, ",\n") .. "\n" .. indent .. "}"
end

---@param out crewlog.Shown
---@param block crewlog.ContentBlock
---@param message crewlog.Message
local function put_block(out, block, message)
  if type(block.thinking) == "string" and block.thinking ~= "" then
    put_fold(out, "*Thinking*", text.lines(block.thinking))
  end
  if type(block.text) == "string" and block.text ~= "" then
    local lines = text.lines(block.text)
    if message.role == "tool" then
      local failed = is_object(message.metadata) and message.metadata.is_error == true
      put_fold(out, ("**%s** %s"):format(failed and "Error" or "Result", text.one_line(block.text, 80)), lines, "")
    else
      put_all(out, lines, 1)
      put(out, "", 1)
    end
  end
  local call = block.tool_call
  if is_object(call) then
    local args = call.args_invalid and call.args_raw_text or call.args
    local shown = type(args) == "string" and args or M.json(args == nil and vim.empty_dict() or args)
    put_fold(out, ("**Tool: %s** %s"):format(text.one_line(call.name, 60), about(args)), text.lines(shown), "json")
  end
  if is_object(block.image) then
    put(out, ("*Image %s %s*"):format(text.one_line(block.image.mime_type, 40), text.one_line(block.image.url, 200)), 1)
    put(out, "", 1)
  end
  if type(block.tool_name) == "string" and block.tool_name ~= "" then
    put(out, ("*Tool offered: %s*"):format(text.one_line(block.tool_name, 60)), 1)
    put(out, "", 1)
  end
end

--- `2026-03-01 09:30:00` of an RFC 3339 time, in local time.
---@param timestamp any
function M.clock(timestamp)
  local seconds = text.seconds(timestamp)
  return seconds and seconds > 0 and os.date("%Y-%m-%d %H:%M:%S", seconds) or ""
end

---@param out crewlog.Shown
---@param message crewlog.Message
---@param timestamp string
local function put_message(out, message, timestamp)
  local role = text.one_line(message.role, 40)
  local when = M.clock(timestamp)
  if role ~= "tool" then -- a result belongs to the turn above it
    put(out, "## " .. (role ~= "" and role or "message") .. (when ~= "" and " · " .. when or ""), ">1")
    put(out, "", 1)
  end
  for _, block in ipairs(is_object(message.content) and message.content or {}) do
    if is_object(block) then
      put_block(out, block, message)
    end
  end
end

---@param out crewlog.Shown
---@param note string
local function put_note(out, note)
  put(out, "> " .. text.one_line(note, 1000), 1)
  put(out, "", 1)
end

local KINDS = {} ---@type table<string, fun(out: crewlog.Shown, data: any, entry: crewlog.Entry)>

function KINDS.message(out, data, entry)
  put_message(out, data, entry.timestamp)
end

function KINDS.compaction(out, data, entry)
  put(out, "## compaction · " .. M.clock(entry.timestamp), ">1")
  put(out, "", 1)
  put_all(out, text.lines(data.summary), 1)
  put(out, "", 1)
end

function KINDS.model_change(out, data)
  put_note(out, ("Model: %s %s"):format(data.provider or "", data.model or ""))
end

function KINDS.reasoning_effort_change(out, data)
  put_note(out, "Reasoning effort: " .. tostring(data.level))
end
KINDS.thinking_change = KINDS.reasoning_effort_change

function KINDS.session_info(out, data)
  if data.name then
    put_note(out, "Name: " .. tostring(data.name))
  end
end

function KINDS.plan_state(out, data)
  put_note(out, ("Plan: %s %s"):format(tostring(data.phase), data.slug or ""))
end

function KINDS.goal_state(out, data)
  put_note(out, ("Goal: %s %s"):format(tostring(data.status), data.objective or ""))
end

function KINDS.llm_call() end

function KINDS.header() end

--- An entry as lines; none for those that say nothing to a reader.
---@param entry crewlog.Entry
---@return crewlog.Shown
function M.entry(entry)
  local out = { lines = {}, levels = {} }
  local bytes = entry.omittedBytes ---@diagnostic disable-line: undefined-field
  if bytes then
    put_note(out, ("%s of %d bytes: too large to be shown here; <CR> opens it"):format(entry.kind, bytes))
  elseif not is_object(entry.data) then
    put_note(out, entry.kind .. ": " .. vim.json.encode(entry.data))
  elseif KINDS[entry.kind] then
    local ok, err = pcall(KINDS[entry.kind], out, entry.data, entry)
    if not ok then -- a record that does not hold what its kind says
      out = { lines = {}, levels = {} }
      put_note(out, ("%s cannot be shown (%s): <CR> opens it"):format(text.one_line(entry.kind, 40), text.one_line(err, 200)))
    end
  else
    put_note(out, text.one_line(entry.kind, 40) .. ": " .. vim.json.encode(entry.data))
  end
  return out
end

return M
