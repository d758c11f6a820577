--- `:checkhealth crewlog`
local client = require("crewlog.client")
local config = require("crewlog.config")
local icons = require("crewlog.icons")

local M = {}

local health = vim.health

local function check_neovim()
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. tostring(vim.version()))
  else
    health.error("Neovim 0.10 or newer is needed")
  end
  local problems = config.problems(config.options)
  if #problems == 0 then
    health.ok("the configuration is right")
  end
  for _, problem in ipairs(problems) do
    health.error(problem)
  end
end

---@param cmd string[]
local function check_command(cmd)
  local path = vim.fn.exepath(cmd[1])
  health.ok(("the command is `%s` (%s)"):format(table.concat(cmd, " "), path))
  -- Its input ends at once, so that a server that works ends too, and one that does not tells why.
  local ran, result = pcall(function()
    return vim.system(cmd, { stdin = "", text = true, env = config.options.env }):wait(10000)
  end)
  if not ran then
    health.error("it cannot be run: " .. tostring(result))
  elseif result.code == 124 then
    health.warn("it did not end within 10 s of the end of its input")
  elseif result.stderr ~= "" then
    local last = vim.list_slice(vim.split(vim.trim(result.stderr), "\n"), -8)
    health.error("it says:\n" .. table.concat(last, "\n"), { "Run it in a terminal: `" .. table.concat(cmd, " ") .. "`" })
  end
end

local function check_server()
  local cmd, trouble = client.command()
  if trouble then
    health.error(trouble, {
      "pip install crewlog (or pipx, or uv tool install), into an environment whose `bin` is on the PATH of Neovim",
      'or: require("crewlog").setup({ cmd = { "/path/to/crewlog", "serve" } })',
      "then :Crewlog restart",
    })
    return
  end
  check_command(cmd)
  client.start()
  vim.wait(10000, function()
    return client.state == "ready" or client.state == "failed"
  end, 10)
  if client.state ~= "ready" then
    health.error(("the server is %s: %s"):format(client.state, client.reason or "it has not answered yet"), {
      "its last words are above, if it had any",
      ":Crewlog restart tries again",
      "update Crewlog and this plugin to the same version where one is too old for the other",
    })
    return
  end
  vim.wait(5000, function()
    return client.watched
  end, 10)
  local err, status = client.request_sync("crewlog/status")
  if err then
    health.error("the server does not answer: " .. err.message, { ":Crewlog restart" })
    return
  end
  health.ok(
    ("server %s, protocol %d, process %d, up for %d s"):format(status.version, status.protocolVersion, status.pid, status.uptimeMs / 1000)
  )
  health.info("home: " .. status.home)
  health.info(("project: %s (%s)"):format(status.projectId, vim.fn.getcwd(-1, -1)))
  health.info(("you claim tasks as %q"):format(config.owner()))
  local watcher = status.watcher
  if watcher.kind == "polling" then
    health.warn("changes of others are found by polling: " .. (watcher.reason or ""), {
      "on Linux, raise fs.inotify.max_user_watches and max_user_instances; on a network file system there is no other way",
    })
  elseif not client.watched or watcher.kind == "none" then
    health.warn("changes of others are not told of", { "see whether the home folder can be read: crewlog doctor" })
  else
    health.ok("changes of others are told by " .. watcher.kind)
  end
  if client.starts > 1 then
    health.info(("the server was started %d times in this Neovim"):format(client.starts))
  end
end

local function check_extras()
  local wanted = config.options.icons
  health.info(
    ("icons: %s"):format(
      wanted == "auto" and (icons.detected() and "auto, on" or "auto, off: set vim.g.have_nerd_font = true where your font has them")
        or tostring(wanted)
    )
  )
  for name, module in vim.spairs({ telescope = "telescope", ["fzf-lua"] = "fzf-lua", ["snacks.nvim"] = "snacks" }) do
    if pcall(require, module) then
      health.ok(name .. " is there: see |crewlog-pickers|")
    end
  end
  local picker, trouble = require("crewlog.pickers").choose()
  if trouble then
    health.warn(trouble, { "install it, or choose another: see |crewlog-pickers|" })
  else
    health.info("searches are shown in " .. (picker and picker.name or "vim.ui.select"))
  end
end

function M.check()
  health.start("crewlog: Neovim")
  check_neovim()
  health.start("crewlog: server")
  check_server()
  health.start("crewlog: extras")
  check_extras()
end

return M
