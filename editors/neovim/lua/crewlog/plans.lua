--- Plans are files, edited as such. Here is what Neovim does not do by itself: see changes at once, make, rename and delete them.
local client = require("crewlog.client")
local store = require("crewlog.store")
local text = require("crewlog.text")

local M = {}

local api = vim.api

---@param err crewlog.Error
local function tell(err)
  vim.notify("crewlog: " .. err.message, vim.log.levels.ERROR)
end

--- The buffer of a file, if one is loaded.
---@param path string
---@return integer?
local function buffer_of(path)
  local real = vim.uv.fs_realpath(path) or path
  return vim.iter(api.nvim_list_bufs()):find(function(buf)
    local name = api.nvim_buf_get_name(buf)
    return name ~= "" and api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == "" and (name == path or vim.uv.fs_realpath(name) == real)
  end)
end

--- Asks for a name, makes an empty plan and opens it. `content` and `done` are for scripts.
---@param name? string
---@param content? string
function M.new(name, content)
  local function make(chosen)
    client.request("plan/save", { name = chosen, content = content or "", ifMatch = "" }, function(err, result)
      if err then
        return tell(
          err.data.kind == "planChanged" and { message = ("there is a plan %s already"):format(text.one_line(chosen, 80)) } or err
        )
      end
      require("crewlog.windows").open(result.path)
    end)
  end
  if name then
    return make(name)
  end
  client.request("plan/generateName", nil, function(err, result)
    if err then
      return tell(err)
    end
    vim.ui.input({ prompt = "Name of the new plan: ", default = result.name }, function(chosen)
      if chosen and vim.trim(chosen) ~= "" then
        make(chosen)
      end
    end)
  end)
end

---@param plan crewlog.PlanInfo
---@param name string
local function move(plan, name)
  local old = buffer_of(plan.path)
  if old and vim.bo[old].modified then
    return tell({ message = ("save or undo your changes of %s first"):format(text.one_line(plan.name, 80)) })
  end
  client.request("plan/load", { name = plan.name }, function(err, loaded)
    if err then
      return tell(err)
    end
    client.request("plan/save", { name = name, content = loaded.content, ifMatch = "" }, function(err2, result)
      if err2 then
        return tell(
          err2.data.kind == "planChanged" and { message = ("there is a plan %s already"):format(text.one_line(name, 80)) } or err2
        )
      end
      client.request("plan/delete", { name = plan.name, ifMatch = loaded.etag }, function(err3)
        if err3 then
          return tell({ message = ("%s is a copy now: %s"):format(text.one_line(name, 80), err3.message) })
        end
        if old and api.nvim_buf_is_valid(old) and not vim.bo[old].modified then
          local new = vim.fn.bufadd(result.path)
          vim.fn.bufload(new)
          vim.bo[new].buflisted = true
          for _, win in ipairs(vim.fn.win_findbuf(old)) do
            api.nvim_win_set_buf(win, new)
          end
          api.nvim_buf_delete(old, {})
        end
      end)
    end)
  end)
end

---@param plan crewlog.PlanInfo
function M.rename(plan)
  vim.ui.input({ prompt = "Name: ", default = plan.name }, function(name)
    if name and vim.trim(name) ~= "" and name ~= plan.name then
      move(plan, name)
    end
  end)
end

--- Deletes a plan that is still the one the user was asked about.
---@param plan crewlog.PlanInfo
---@param confirmed fun(question: string): boolean
function M.delete(plan, confirmed)
  client.request("plan/load", { name = plan.name }, function(err, loaded)
    if err then
      return tell(err)
    elseif not confirmed(("Delete plan %s?"):format(text.one_line(plan.name, 80))) then
      return
    end
    client.request("plan/delete", { name = plan.name, ifMatch = loaded.etag }, function(err2)
      if err2 then
        tell(err2)
      end
    end)
  end)
end

local seen = {} ---@type table<integer, string> state of the file that a buffer was read from or written to
local told = {} ---@type table<integer, string> state of the file of which the user was told

---@param path string
---@return string # differs when the file was written
local function stamp(path)
  local status = vim.uv.fs_stat(path)
  return status and ("%d.%d %d %d"):format(status.mtime.sec, status.mtime.nsec, status.size, status.ino) or ""
end

--- A plan changed on disk. Neovim would see it at the next focus or command; here it is seen at once. A buffer with changes of the
--- user's is left alone: Neovim asks at `:w`, as it does for every file.
---@param data crewlog.PlanDidChange
local function on_change(data)
  local plan = data.name and store.plans[data.name]
  local buf = plan and buffer_of(plan.path)
  if not buf then
    return
  end
  local now = stamp(plan.path)
  if not vim.bo[buf].modified then
    vim.cmd.checktime(buf)
  elseif seen[buf] and now ~= seen[buf] and told[buf] ~= now then
    told[buf] = now
    vim.notify(
      ("crewlog: plan %s was changed by somebody else; your text is kept, and :w asks"):format(text.one_line(plan.name, 80)),
      vim.log.levels.WARN
    )
  end
end

store.listen(function(topic, data)
  if topic == "plans" then
    on_change(data)
  end
end)

api.nvim_create_autocmd({ "BufReadPost", "BufWritePost" }, {
  group = api.nvim_create_augroup("crewlog.plans", {}),
  pattern = "*.md",
  callback = function(args)
    seen[args.buf] = stamp(api.nvim_buf_get_name(args.buf))
  end,
})

return M
