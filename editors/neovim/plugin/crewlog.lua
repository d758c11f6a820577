-- Commands and maps. Nothing else is loaded until one of them is used.
if vim.g.loaded_crewlog then
  return
end
vim.g.loaded_crewlog = 1

if vim.fn.has("nvim-0.10") == 0 then
  vim.notify("crewlog: Neovim 0.10 or newer is needed", vim.log.levels.ERROR)
  return
end

require("crewlog.highlights").define()

local group = vim.api.nvim_create_augroup("crewlog", {})
vim.api.nvim_create_autocmd("ColorScheme", {
  group = group,
  callback = function()
    require("crewlog.highlights").define()
  end,
})

vim.api.nvim_create_user_command("Crewlog", function(args)
  require("crewlog.command").run(args)
end, {
  nargs = "*",
  desc = "Crewlog: sessions, tasks, plans and teams",
  complete = function(lead, line)
    return require("crewlog.command").complete(lead, line)
  end,
})

vim.keymap.set("n", "<Plug>(crewlog-toggle)", function()
  require("crewlog").toggle()
end, { desc = "Crewlog: show or close the sidebar" })
for _, section in ipairs({ "tasks", "sessions", "plans", "team" }) do
  vim.keymap.set("n", ("<Plug>(crewlog-%s)"):format(section), function()
    require("crewlog").open(section)
  end, { desc = "Crewlog: the sidebar at " .. section })
end
