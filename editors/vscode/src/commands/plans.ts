import { commands, TabInputText, Uri, window, workspace } from "vscode";
import type { Parts } from "../context";
import { planNameProblem } from "../model/plans";
import { inert, line } from "../text";
import type { Views } from "../views";
import { callOf, pickPlan, question } from "./pick";

export function registerPlanCommands(parts: Parts, views: Views): void {
  const { context, crew, plans, report } = parts;

  const onPlan = (name: string, title: string, run: (plan: string) => Promise<void>) =>
    commands.registerCommand(`crewlog.plan.${name}`, async (...args: unknown[]) => {
      const call = callOf(args, views.plans);
      if (call.kind === "nothing") return;
      const plan = call.kind === "on" ? call.target.plan : await pickPlan(parts, title, question(call, "Pick a plan"));
      if (plan === undefined) return;
      try {
        await run(plan);
      } catch (error) {
        await report.failed(title, error);
      }
    });
  const fileOf = async (name: string) => Uri.file((await crew.request("plan/path", { name })).path);
  const open = async (name: string, preview = true) => void (await window.showTextDocument(await fileOf(name), { preview }));
  const names = () => plans.all.map(({ name }) => name);

  context.subscriptions.push(
    onPlan("open", "Open Plan", (name) => open(name)),
    commands.registerCommand("crewlog.plan.create", async () => {
      try {
        const generated = (await crew.request("plan/generateName", {})).name;
        const name = await window.showInputBox({
          title: "New Plan",
          prompt: "Name of the plan; Enter takes the generated one",
          value: generated,
          validateInput: (text) => planNameProblem(text.trim(), names()),
        });
        if (name === undefined) return;
        const content = `# ${name.trim().replace(/-/g, " ")}\n\n`;
        await report.during("Making the plan", crew.request("plan/save", { name: name.trim(), content, ifMatch: "" }));
        await open(name.trim(), false);
      } catch (error) {
        await report.failed("No plan was made", error);
      }
    }),
    onPlan("rename", "Rename Plan", async (name) => {
      const typed = await window.showInputBox({
        title: "Rename Plan",
        value: name,
        validateInput: (text) => (text.trim() === name ? undefined : planNameProblem(text.trim(), names())),
      });
      const to = typed?.trim();
      if (to === undefined || to === name) return;
      const from = await fileOf(name);
      if (!(await saved(from))) return;
      await report.during("Renaming the plan", rename(parts, name, to));
      const tabs = tabsOf(from);
      if (tabs.length > 0) {
        await window.tabGroups.close(tabs);
        await open(to, false);
      }
    }),
    onPlan("delete", "Delete Plan", async (name) => {
      const file = await fileOf(name);
      if (!(await saved(file))) return;
      const { content, etag } = await crew.request("plan/load", { name });
      const { deleted } = await report.during("Deleting the plan", crew.request("plan/delete", { name, ifMatch: etag }));
      if (!deleted) return;
      await window.tabGroups.close(tabsOf(file));
      const undo = async () => {
        try {
          await crew.request("plan/save", { name, content, ifMatch: "" });
        } catch (error) {
          await report.failed(`The plan ${name} was not brought back`, error);
        }
      };
      void window.showInformationMessage(inert(`The plan ${line(name, 80)} was deleted.`), "Undo").then((chosen) => {
        if (chosen === "Undo") void undo();
      });
    }),
  );
}

/** The plan under its new name, and no more under the old one. A plan that somebody changes meanwhile keeps its old name. */
async function rename({ crew }: Parts, from: string, to: string): Promise<void> {
  const { content, etag } = await crew.request("plan/load", { name: from });
  const made = await crew.request("plan/save", { name: to, content, ifMatch: "" });
  try {
    await crew.request("plan/delete", { name: from, ifMatch: etag });
  } catch (error) {
    await crew.request("plan/delete", { name: to, ifMatch: made.etag });
    throw error;
  }
}

/** Saves the plan where it is open with changes; false when it could not be saved. */
async function saved(file: Uri): Promise<boolean> {
  const document = workspace.textDocuments.find(({ uri }) => uri.toString() === file.toString());
  return document === undefined || !document.isDirty || document.save();
}

function tabsOf(file: Uri) {
  return window.tabGroups.all
    .flatMap(({ tabs }) => tabs)
    .filter(({ input }) => input instanceof TabInputText && input.uri.toString() === file.toString());
}
