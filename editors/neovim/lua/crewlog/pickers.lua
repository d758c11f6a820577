--- Live search over all sessions in telescope, fzf-lua and snacks.nvim: one question to the server for what is typed.
local config = require("crewlog.config")
local names = require("crewlog.names")
local search = require("crewlog.search")

local M = {}

---@alias crewlog.Picker "auto"|"select"|"telescope"|"fzf-lua"|"snacks"

---@class crewlog.pickers.Opts
---@field query? string what is searched for at first
---@field all_projects? boolean
---@field limit? integer

---@class crewlog.pickers.Live
---@field ask fun(query: string, done: fun(hits: crewlog.SearchHit[])) `done` is not called once something else was asked
---@field stop fun()

--- Questions of which only the last is answered. An error is told once for as long as it stays the same.
---@param opts? { all_projects?: boolean, limit?: integer }
---@return crewlog.pickers.Live
function M.live(opts)
  local last, cancel, told = 0, nil, nil ---@type integer, fun()?, string?
  local live = {}

  function live.stop()
    last = last + 1
    if cancel then
      cancel()
      cancel = nil
    end
  end

  function live.ask(query, done)
    live.stop()
    local mine = last
    if vim.trim(query) == "" then
      return done({})
    end
    cancel = search.query(query, opts, function(err, hits)
      if mine ~= last then
        return
      end
      cancel = nil
      if err and err.message ~= told then
        vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
      end
      told = err and err.message
      done(hits or {})
    end)
  end

  return live
end

---@type table<string, "edit"|"split"|"vsplit"|"tab">
local HOW = {
  default = "edit",
  edit = "edit",
  horizontal = "split",
  split = "split",
  vertical = "vsplit",
  vsplit = "vsplit",
  tab = "tab",
  tabnew = "tab",
  tabedit = "tab",
  tabdrop = "tab",
  ["tab drop"] = "tab",
}

---@param hit? crewlog.SearchHit
---@param how? string as the picker calls it
local function open(hit, how)
  if hit then
    search.open(hit, HOW[how or "edit"])
  end
end

--- What telescope calls a finder. It returns at once, so that typing never waits; entries come later.
---@param opts? crewlog.pickers.Opts
function M.telescope_finder(opts)
  local live = M.live(opts)
  return setmetatable({ close = live.stop }, {
    __call = function(finder, prompt, process_result, process_complete)
      live.ask(prompt or "", function(hits)
        for _, hit in ipairs(hits) do
          local line = search.format(hit)
          -- `filename` and `text` are for the quickfix list
          local entry =
            { value = hit, display = line, ordinal = line, filename = names.session(hit.session.id), text = line, finder = finder }
          if process_result(entry) then
            return -- telescope wants no more of these
          end
        end
        if not process_result() then -- a late end would end what was asked after it
          process_complete()
        end
      end)
    end,
  })
end

--- Live search in telescope; `:Telescope crewlog`. `opts` may hold options of telescope.
---@param opts? crewlog.pickers.Opts|table
function M.telescope(opts)
  opts = opts or {}
  local actions = require("telescope.actions")
  local state = require("telescope.actions.state")
  local finder = M.telescope_finder(opts)
  require("telescope.pickers")
    .new(opts, {
      prompt_title = "Search sessions",
      default_text = opts.query,
      finder = finder,
      sorter = require("telescope.sorters").empty(), -- the server's order
      attach_mappings = function()
        require("telescope.actions.set").select:replace(function(prompt, how)
          local entry = state.get_selected_entry()
          actions.close(prompt)
          if entry and entry.finder == finder then -- that of another picker until this one was answered
            open(entry.value, how)
          end
        end)
        return true
      end,
    })
    :find()
end

--- Live search in fzf-lua. `opts` may hold options of fzf-lua.
---@param opts? crewlog.pickers.Opts|table
function M.fzf_lua(opts)
  opts = opts or {}
  local live = M.live(opts)
  -- A line begins with a number, which is not shown: lines of different hits may read the same.
  local shown = {} ---@type crewlog.SearchHit[]
  local function finish() end
  local function action(how)
    return function(selected)
      open(shown[tonumber((selected and selected[1] or ""):match("^%d+"))], how)
    end
  end
  require("fzf-lua").fzf_live(
    function(query)
      query = type(query) == "table" and query[1] or query -- a string in versions before 2025
      return function(put)
        finish() -- what was asked before is not answered any more
        finish = function()
          put(nil)
        end
        live.ask(query or "", function(hits)
          for _, hit in ipairs(hits) do
            shown[#shown + 1] = hit
            put(("%d:%s"):format(#shown, search.format(hit)))
          end
          finish()
        end)
      end
    end,
    vim.tbl_deep_extend("force", {
      prompt = "Search sessions> ",
      exec_empty_query = false,
      previewer = false,
      func_async_callback = false, -- lines come from outside the coroutine in which versions before 2025 ask
      fzf_opts = { ["--delimiter"] = ":", ["--with-nth"] = "2..", ["--no-multi"] = true },
      actions = {
        ["enter"] = action("edit"),
        ["ctrl-s"] = action("split"),
        ["ctrl-v"] = action("vsplit"),
        ["ctrl-t"] = action("tab"),
      },
    }, opts)
  )
end

--- The source of snacks.nvim.
---@return table
function M.snacks_source()
  local live ---@type crewlog.pickers.Live?
  return {
    title = "Search sessions",
    live = true,
    supports_live = true,
    layout = { preset = "select" },
    finder = function(opts, ctx)
      live = live or M.live({ all_projects = opts.all_projects, limit = opts.limit })
      local found, waiting ---@type table[]?, table?
      live.ask(ctx.filter.search, function(hits)
        found = vim.tbl_map(function(hit)
          return { text = search.format(hit), hit = hit }
        end, hits)
        if waiting then
          waiting:resume()
        end
      end)
      if found then
        return found
      end
      ---@async
      return function(put)
        while not found do
          waiting = require("snacks.picker.util.async").running()
          waiting:suspend() -- ends here when something else is typed
        end
        for _, item in ipairs(found) do
          put(item)
        end
      end
    end,
    format = function(item)
      return { { item.text } }
    end,
    confirm = function(picker, item, action)
      picker:close()
      open(item and item.hit, action and action.cmd)
    end,
    on_close = function()
      if live then
        live.stop()
        live = nil
      end
    end,
  }
end

--- Makes `Snacks.picker.crewlog()` known, where snacks.nvim has a picker.
---@return boolean
function M.register_snacks()
  local ok, sources = pcall(require, "snacks.picker.config.sources") -- versions before 2025 have none
  if ok and not sources.crewlog then
    sources.crewlog = M.snacks_source()
  end
  return ok
end

--- Live search in snacks.nvim. `opts` may hold options of its picker; those that its user has set for the source `crewlog` hold, too.
---@param opts? crewlog.pickers.Opts|table
function M.snacks(opts)
  opts = opts or {}
  M.register_snacks()
  require("snacks").picker.pick("crewlog", vim.tbl_extend("keep", opts, { search = opts.query }))
end

---@type { name: crewlog.Picker, find: (fun(): any), open: fun(opts?: crewlog.pickers.Opts) }[] `find`: something, or nil or an error
M.KNOWN = {
  {
    name = "snacks",
    find = function()
      return require("snacks").picker and M.register_snacks()
    end,
    open = M.snacks,
  },
  {
    name = "telescope",
    find = function()
      return require("telescope")
    end,
    open = M.telescope,
  },
  {
    name = "fzf-lua",
    find = function()
      return require("fzf-lua").fzf_live
    end,
    open = M.fzf_lua,
  },
}

--- The picker that searches are shown in, by the option `picker`.
---@return { name: crewlog.Picker, open: fun(opts?: crewlog.pickers.Opts) }? # nil: `vim.ui.select`
---@return string? trouble the one that was asked for is not there
function M.choose()
  local wanted = config.options.picker
  if wanted == "select" then
    return nil
  end
  for _, known in ipairs(M.KNOWN) do
    if wanted == "auto" or wanted == known.name then
      local ok, found = pcall(known.find)
      if ok and found then
        return known
      end
    end
  end
  return nil, wanted ~= "auto" and ("picker = %q, but it is not installed; vim.ui.select is used"):format(wanted) or nil
end

return M
