--- Highlight groups, linked to standard ones; a colour scheme or the user may set them.
local M = {}

---@type table<string, string|false> false: as other text; `Normal` would hide the line of the cursor
M.LINKS = {
  CrewlogSection = "Title",
  CrewlogList = "Directory",
  CrewlogMarker = "NonText",
  CrewlogCount = "Comment",
  CrewlogId = "Number",
  CrewlogSubject = false,
  CrewlogOwner = "Identifier",
  CrewlogTime = "Comment",
  CrewlogPending = false,
  CrewlogInProgress = "DiagnosticInfo",
  CrewlogBlocked = "DiagnosticWarn",
  CrewlogCompleted = "DiagnosticOk",
  CrewlogDone = "Comment",
  CrewlogUnknown = "DiagnosticHint",
  CrewlogSession = "Special",
  CrewlogPlan = "String",
  CrewlogMember = "Identifier",
  CrewlogError = "DiagnosticError",
  CrewlogHint = "Comment",
  CrewlogKey = "Special",
  CrewlogUser = "DiagnosticOk",
  CrewlogAssistant = "Function",
  CrewlogTool = "DiagnosticWarn",
  CrewlogThinking = "Comment",
  CrewlogEvent = "Comment",
}

function M.define()
  for group, link in pairs(M.LINKS) do
    vim.api.nvim_set_hl(0, group, { link = link or nil, default = true })
  end
end

return M
