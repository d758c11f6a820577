--- One server process and the messages to and from it: an RPC client as `vim.lsp.start` takes one for `cmd`.
---
--- Neovim's own (`vim.lsp.rpc.start`) would do but for what users would notice: it forgets the requests of a server that died, throws
--- where `initialize` is refused or no message comes, drops a reply that holds half of a surrogate pair, and keeps the server's last
--- words from us.
local M = {}

---@class crewlog.rpc.Hooks
---@field refused fun(err: crewlog.Error) `initialize` was answered with an error
---@field exited fun(code: integer, signal: integer, last_words: string)

--- The code of our own error for requests that got no answer.
M.DISCONNECTED = -32099

local HEADER_LIMIT = 65536
local STDERR_LIMIT = 4096

---@param message string
---@param kind? string
---@return crewlog.Error
function M.error(message, kind)
  return { code = M.DISCONNECTED, message = message, data = { kind = kind or "disconnected" } }
end

--- Cuts a stream into the bodies of messages.
---@param on_body fun(body: string)
---@return fun(data: string): string? # the error, after which nothing more is to be fed
function M.splitter(on_body)
  local chunks, size = {}, 0
  local need ---@type integer?
  return function(data)
    chunks[#chunks + 1] = data
    size = size + #data
    while true do
      if not need then
        local head = table.concat(chunks)
        local stop, finish = head:find("\r\n\r\n", 1, true)
        if not stop then
          chunks = { head }
          return size > HEADER_LIMIT and "no header where one was expected" or nil
        end
        need = tonumber(head:sub(1, stop + 1):match("[Cc]ontent%-[Ll]ength: *(%d+)"))
        if not need then
          return "a header without Content-Length: " .. head:sub(1, 80)
        end
        chunks = { head:sub(finish + 1) }
        size = #chunks[1]
      end
      if size < need then
        return nil
      end
      local all = table.concat(chunks)
      on_body(all:sub(1, need))
      chunks = { all:sub(need + 1) }
      size = #chunks[1]
      need = nil
    end
  end
end

--- Decodes a body. Halves of surrogate pairs, which JSON allows and Neovim's decoder refuses, become U+FFFD.
---@param body string
---@return boolean ok
---@return any message or what was wrong
function M.decode(body)
  local ok, message = pcall(vim.json.decode, body, { luanil = { object = true } })
  if ok then
    return true, message
  end
  local mended = body:gsub("(\\+)u(%x%x%x%x)", function(slashes, hex)
    local code = tonumber(hex, 16)
    if #slashes % 2 == 1 and code >= 0xD800 and code <= 0xDFFF then
      return slashes .. "u" .. (code < 0xDC00 and "\1" or "\2") .. hex -- marks that no JSON holds
    end
  end)
  mended = mended:gsub("\\u\1(%x%x%x%x)\\u\2(%x%x%x%x)", "\\u%1\\u%2"):gsub("\\u[\1\2]%x%x%x%x", "\\ufffd")
  return pcall(vim.json.decode, mended, { luanil = { object = true } })
end

--- Starts the command. Raises what `vim.system` raises when it cannot be run.
---@param cmd string[]
---@param opts { env?: table<string, string>, cwd?: string }
---@param dispatchers vim.lsp.rpc.Dispatchers
---@param hooks crewlog.rpc.Hooks
---@return vim.lsp.rpc.PublicClient
function M.start(cmd, opts, dispatchers, hooks)
  local process ---@type vim.SystemObj
  local pending = {} ---@type table<integer, { method: string, done: fun(err?: crewlog.Error, result?: any), complete?: fun(id: integer) }>
  local last_id, last_words, broken = 0, "", nil

  local function send(message)
    if process:is_closing() then
      return false
    end
    local body = vim.json.encode(message)
    process:write(("Content-Length: %d\r\n\r\n%s"):format(#body, body))
    return true
  end

  local function settle(id, err, result)
    local request = pending[id]
    pending[id] = nil
    if not request then
      return
    end
    vim.schedule(function()
      if request.complete then
        request.complete(id)
      end
      if request.method == "initialize" and err then
        hooks.refused(err)
      else
        request.done(err, result)
      end
    end)
  end

  local function answer(message)
    vim.schedule(function()
      local ok, result, err = pcall(dispatchers.server_request, message.method, message.params)
      if not ok then
        result, err = nil, { code = -32603, message = tostring(result) }
      end
      send({ jsonrpc = "2.0", id = message.id, result = result == nil and not err and vim.NIL or result, error = err })
    end)
  end

  local function on_body(body)
    local ok, message = M.decode(body)
    if not ok then
      local id = tonumber(body:sub(1, 200):match('"id" *: *(%d+)'))
      if id then
        settle(id, M.error("the server's answer cannot be read: " .. tostring(message), "unreadable"))
      end
    elseif type(message) ~= "table" then
      return
    elseif message.method and message.id ~= nil then
      answer(message)
    elseif message.method then
      vim.schedule(function()
        dispatchers.notification(message.method, message.params)
      end)
    elseif message.id ~= nil then
      settle(message.id, message.error, message.result)
    end
  end

  local feed = M.splitter(on_body)

  local function on_stdout(_, data)
    if not data or broken then
      return
    end
    broken = feed(data)
    if broken then
      last_words = last_words .. "it does not speak the protocol: " .. broken
      process:kill(15)
    end
  end

  local function on_stderr(_, data)
    if data then
      last_words = (last_words .. data):sub(-STDERR_LIMIT)
    end
  end

  local function on_exit(result)
    for id, request in pairs(pending) do
      if request.method == "initialize" then
        pending[id] = nil -- told of by `exited`
      else
        settle(id, M.error("the server ended before it answered " .. request.method))
      end
    end
    dispatchers.on_exit(0, 0) -- Neovim would report the code once more, and at each restart
    vim.schedule(function()
      hooks.exited(result.code, result.signal, vim.trim(last_words))
    end)
  end

  process = vim.system(cmd, {
    stdin = true,
    stdout = on_stdout,
    stderr = on_stderr,
    cwd = opts.cwd,
    env = opts.env,
    detach = vim.fn.has("win32") == 0, -- an interrupt meant for Neovim is not for the server
  }, on_exit)

  return {
    request = function(method, params, done, complete)
      local id = last_id + 1
      if not send({ jsonrpc = "2.0", id = id, method = method, params = params }) then
        return false
      end
      last_id = id
      pending[id] = { method = method, done = done, complete = complete }
      return true, id
    end,
    notify = function(method, params)
      return send({ jsonrpc = "2.0", method = method, params = params })
    end,
    is_closing = function()
      return process:is_closing()
    end,
    terminate = function()
      process:kill(15)
    end,
  }
end

return M
