--- `:Telescope crewlog`
local function search(opts)
  require("crewlog.pickers").telescope(opts)
end

return require("telescope").register_extension({ exports = { crewlog = search, search = search } })
