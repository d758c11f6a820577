// The session page's script, in the webview.
export {};
