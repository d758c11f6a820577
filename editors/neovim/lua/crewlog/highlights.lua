--- Highlight groups, linked to standard ones; a colour scheme or the user may set them.
local M = {}

M.LINKS = {
  CrewlogSection = "Title",
  CrewlogList = "Directory",
  CrewlogMarker = "NonText",
  CrewlogCount = "Comment",
  CrewlogId = "Number",
  CrewlogSubject = "Normal",
  CrewlogOwner = "Identifier",
  CrewlogTime = "Comment",
  CrewlogPending = "Normal",
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
    vim.api.nvim_set_hl(0, group, { link = link, default = true })
  end
end

return M
