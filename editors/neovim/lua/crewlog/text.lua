--- What comes from outside, made fit for a line on the screen. Pure.
local M = {}

-- Marks that turn or hide what stands beside them (bidirectional controls, zero width), and line separators.
local HIDDEN = { "\u{200b}", "\u{200e}", "\u{200f}", "\u{2028}", "\u{2029}", "\u{feff}" }
for code = 0x202a, 0x202e do
  HIDDEN[#HIDDEN + 1] = vim.fn.nr2char(code)
end
for code = 0x2066, 0x2069 do
  HIDDEN[#HIDDEN + 1] = vim.fn.nr2char(code)
end

--- Cuts a text to so many bytes, not inside a character.
---@param s string
---@param bytes integer
---@return string
function M.cut(s, bytes)
  if #s <= bytes then
    return s
  end
  local stop = bytes
  while stop > 0 and s:byte(stop + 1) >= 0x80 and s:byte(stop + 1) < 0xc0 do
    stop = stop - 1
  end
  return s:sub(1, stop)
end

--- One line of printable text: line ends and tabs become blanks, other control characters their pictures (`␛`).
---@param value any what should be a string
---@param limit? integer bytes, 300 by default; what is longer ends in `…`
---@return string
function M.one_line(value, limit)
  if value == nil or value == vim.NIL then
    return ""
  end
  local s = type(value) == "string" and value or vim.inspect(value)
  local short = M.cut(s, limit or 300)
  local line = short:gsub("[\r\n\t]+", " "):gsub("[%z\1-\31\127]", function(char)
    local code = char:byte()
    return vim.fn.nr2char(code == 127 and 0x2421 or 0x2400 + code)
  end)
  if line:find("[\xe2\xef\xc2]") then
    for _, mark in ipairs(HIDDEN) do
      line = line:gsub(mark, "")
    end
    line = line:gsub("\xc2[\x80-\x9f]", "\u{fffd}")
  end
  return vim.trim(line) .. (#short < #s and "…" or "")
end

--- The lines of a text, fit for a buffer; a line over the limit is cut and tells how much is missing.
---@param value any
---@param limit? integer bytes of one line, 10,000 by default
---@return string[]
function M.lines(value, limit)
  limit = limit or 10000
  local s = type(value) == "string" and value or (value == nil or value == vim.NIL) and "" or vim.inspect(value)
  local lines = vim.split(s:gsub("\r\n", "\n"), "\n", { plain = true })
  for i, line in ipairs(lines) do
    if #line > limit then
      local short = M.cut(line, limit)
      lines[i] = ("%s… (%d more bytes)"):format(short, #line - #short)
    end
  end
  return lines
end

-- The well-formed sequences of more than one byte (Unicode, table 3-7).
local UTF8 = {
  "[\xc2-\xdf][\x80-\xbf]",
  "\xe0[\xa0-\xbf][\x80-\xbf]",
  "[\xe1-\xec\xee\xef][\x80-\xbf][\x80-\xbf]",
  "\xed[\x80-\x9f][\x80-\xbf]",
  "\xf0[\x90-\xbf][\x80-\xbf][\x80-\xbf]",
  "[\xf1-\xf3][\x80-\xbf][\x80-\xbf][\x80-\xbf]",
  "\xf4[\x80-\x8f][\x80-\xbf][\x80-\xbf]",
}

--- Whether a text is UTF-8, as JSON must be.
---@param s string
---@return boolean
function M.is_utf8(s)
  if not s:find("[\x80-\xff]") then
    return true
  end
  for _, sequence in ipairs(UTF8) do
    s = s:gsub(sequence, " ")
  end
  return not s:find("[\x80-\xff]")
end

local SPANS = { { 60, "s" }, { 60, "min" }, { 24, "h" }, { 7, "d" }, { 52, "w" } }

--- How long ago a time was: "now", "5 min", "3 h", "2 d".
---@param timestamp string RFC 3339
---@param now? integer seconds since 1970
---@return string # "" for a time that was never set
function M.ago(timestamp, now)
  local seconds = M.seconds(timestamp)
  if not seconds or seconds <= 0 then
    return ""
  end
  local span = (now or os.time()) - seconds
  if span < 10 then
    return "now"
  end
  for _, unit in ipairs(SPANS) do
    if span < unit[1] then
      return ("%d %s"):format(span, unit[2])
    end
    span = math.floor(span / unit[1])
  end
  return ("%d y"):format(span)
end

--- Seconds since 1970 of an RFC 3339 time.
---@param timestamp any
---@return integer?
function M.seconds(timestamp)
  if type(timestamp) ~= "string" then
    return nil
  end
  local y, mo, d, h, mi, s, zone = timestamp:match("^(%d+)-(%d+)-(%d+)[Tt ](%d+):(%d+):(%d+)%.?%d*(.*)$")
  if not y then
    return nil
  end
  -- Days from the civil calendar, since os.time() takes local times only.
  local year, month = tonumber(y), tonumber(mo)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  local days = 365 * year + math.floor(year / 4) - math.floor(year / 100) + math.floor(year / 400)
  days = days + math.floor((153 * (month - 3) + 2) / 5) + tonumber(d) - 1 - 719468
  local seconds = ((days * 24 + tonumber(h)) * 60 + tonumber(mi)) * 60 + tonumber(s)
  local sign, zh, zm = zone:match("^([+-])(%d%d):?(%d%d)$")
  if sign then
    seconds = seconds - (sign == "+" and 1 or -1) * (tonumber(zh) * 60 + tonumber(zm)) * 60
  end
  return seconds
end

return M
