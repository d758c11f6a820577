-- Commands, maps and the names of our buffers. Nothing else is loaded until one of them is used.
if vim.g.loaded_crewlog then
  return
end
vim.g.loaded_crewlog = 1

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("crewlog: Neovim 0.10 or newer is needed", vim.log.levels.ERROR)
  return
end

local group = vim.api.nvim_create_augroup("crewlog", {})

require("crewlog.highlights").define()
vim.api.nvim_create_autocmd("ColorScheme", {
  group = group,
  callback = function()
    require("crewlog.highlights").define()
  end,
})

vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = "crewlog://*",
  nested = true,
  callback = function(args)
    require("crewlog.buffers").read(args.buf)
  end,
})
vim.api.nvim_create_autocmd("BufWriteCmd", {
  group = group,
  pattern = "crewlog://*",
  callback = function(args)
    require("crewlog.buffers").write(args.buf)
  end,
})
vim.api.nvim_create_autocmd("DirChanged", {
  group = group,
  pattern = "global",
  callback = function()
    local client = package.loaded["crewlog.client"]
    if client then
      client.folder_changed()
    end
  end,
})

-- A source of snacks.nvim, where that is there once all plugins are loaded.
local function register_snacks()
  if rawget(_G, "Snacks") then
    require("crewlog.pickers").register_snacks()
  end
end
if vim.v.vim_did_enter == 1 then
  register_snacks()
else
  vim.api.nvim_create_autocmd("VimEnter", { group = group, once = true, callback = register_snacks })
end

vim.api.nvim_create_user_command("Crewlog", function(args)
  require("crewlog.command").run(args)
end, {
  nargs = "*",
  bang = true,
  desc = "Crewlog: sessions, tasks, plans and teams",
  complete = function(lead, line)
    return require("crewlog.command").complete(lead, line)
  end,
})

---@param modes string|string[]
---@param name string
---@param desc string
---@param run fun()
local function plug(modes, name, desc, run)
  vim.keymap.set(modes, ("<Plug>(crewlog-%s)"):format(name), run, { desc = "Crewlog: " .. desc })
end

plug("n", "toggle", "show or close the sidebar", function()
  require("crewlog").toggle()
end)
for _, section in ipairs({ "tasks", "sessions", "plans", "team" }) do
  plug("n", section, "the sidebar at its " .. section, function()
    require("crewlog").open(section)
  end)
end
plug("n", "search", "search all sessions", function()
  require("crewlog.search").prompt()
end)
plug("n", "history", "pick one of the last prompts", function()
  require("crewlog.history").pick()
end)
plug({ "n", "i" }, "history-older", "older prompt", function()
  require("crewlog.history").older()
end)
plug({ "n", "i" }, "history-newer", "newer prompt", function()
  require("crewlog.history").newer()
end)
