--- The prompts of this project, for prompts of other plugins: older and newer ones, as in a shell.
local client = require("crewlog.client")

local M = {}

local api = vim.api
local TIMEOUT = 3000

---@class crewlog.history.Place where a prompt buffer stands in the history
---@field index? integer nil: at what the user types
---@field draft string what was typed
---@field shown string what was put there

local places = {} ---@type table<integer, crewlog.history.Place>

---@param buf integer
local function is_prompt(buf)
  return vim.bo[buf].buftype == "prompt"
end

--- What is typed: after the prompt on the last line of a prompt buffer, else the whole buffer.
---@param buf integer
---@return string
function M.input(buf)
  if is_prompt(buf) then
    local last = api.nvim_buf_get_lines(buf, -2, -1, false)[1] or ""
    return (last:sub(#vim.fn.prompt_getprompt(buf) + 1))
  end
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, false), "\n")
end

---@param buf integer
---@param input string
local function put(buf, input)
  if is_prompt(buf) then
    -- A prompt is one line: what was pasted over several is joined.
    api.nvim_buf_set_lines(buf, -2, -1, false, { vim.fn.prompt_getprompt(buf) .. input:gsub("%s*[\r\n]+%s*", " ") })
  else
    api.nvim_buf_set_lines(buf, 0, -1, false, vim.split(input, "\n", { plain = true }))
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local line = api.nvim_buf_line_count(buf)
    api.nvim_win_set_cursor(win, { line, #api.nvim_buf_get_lines(buf, line - 1, line, false)[1] })
  end
end

---@param direction "older"|"newer"
---@param opts? { buf?: integer }
---@return string? # what is shown now; nil at either end
local function move(direction, opts)
  local buf = opts and opts.buf or api.nvim_get_current_buf()
  buf = buf == 0 and api.nvim_get_current_buf() or buf
  local typed = M.input(buf)
  local place = places[buf]
  if not place or place.shown ~= typed then
    place = { draft = typed, shown = typed }
    places[buf] = place
    api.nvim_create_autocmd("BufWipeout", {
      buffer = buf,
      once = true,
      callback = function()
        places[buf] = nil
      end,
    })
  end
  if direction == "newer" and not place.index then
    return nil
  end
  local params = { direction = direction, index = place.index, prefix = place.draft }
  local err, found = client.request_sync("history/navigate", params, TIMEOUT)
  if err then
    vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
    return nil
  elseif found then
    place.index = found.index
    put(buf, found.item.display)
  elseif direction == "newer" then
    place.index = nil
    put(buf, place.draft)
  else
    return nil
  end
  place.shown = M.input(buf)
  return place.shown
end

--- Puts the next older prompt that begins with what was typed into a buffer, the present one by default.
---@param opts? { buf?: integer }
---@return string? # it, or nil when there is none
function M.older(opts)
  return move("older", opts)
end

--- Puts the next newer one there; after the newest, what was typed.
---@param opts? { buf?: integer }
---@return string?
function M.newer(opts)
  return move("newer", opts)
end

--- Adds a prompt that was sent.
---@param prompt string
---@param opts? { session_id?: string }
---@param done? fun(err?: crewlog.Error, length?: integer)
function M.add(prompt, opts, done)
  client.request("history/add", { text = prompt, sessionId = opts and opts.session_id }, function(err, result)
    if done then
      done(err, result and result.length)
    elseif err then
      vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
    end
  end)
end

--- The newest prompts.
---@param opts? { limit?: integer, offset?: integer, query?: string }
---@param done fun(err?: crewlog.Error, items?: crewlog.HistoryLine[], total?: integer)
function M.list(opts, done)
  opts = opts or {}
  client.request("history/list", { limit = opts.limit or 500, offset = opts.offset, query = opts.query }, function(err, result)
    done(err, result and result.items, result and result.total)
  end)
end

--- Maps keys of a buffer, in insert and normal mode.
---@param buf? integer
---@param keys? { older?: string, newer?: string } `<C-p>` and `<C-n>` by default
function M.attach(buf, keys)
  keys = vim.tbl_extend("force", { older = "<C-p>", newer = "<C-n>" }, keys or {})
  for name, key in pairs(keys) do
    vim.keymap.set({ "i", "n" }, key, function()
      move(name --[[@as "older"|"newer"]], { buf = buf })
    end, { buffer = buf or 0, desc = ("crewlog: %s prompt"):format(name) })
  end
end

--- Lets the user pick one of the newest prompts.
---@param picked? fun(prompt: string) by default it is put below the cursor
function M.pick(picked)
  M.list({}, function(err, items)
    if err then
      return vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
    elseif #items == 0 then
      return vim.notify("crewlog: no prompt was kept for this folder yet")
    end
    local text = require("crewlog.text")
    vim.ui.select(items, {
      prompt = "History",
      format_item = function(item)
        return text.one_line(item.display, 160)
      end,
    }, function(item)
      if not item then
        return
      elseif picked then
        return picked(item.display)
      end
      api.nvim_put(vim.split(item.display, "\n", { plain = true }), "l", true, true)
    end)
  end)
end

return M
