// The dependency graph's script, in the webview.
export {};
