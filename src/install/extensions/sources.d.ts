/** Files that are read as text, to be written out as they are. */
declare module '*.mjs' {
  const text: string;
  // biome-ignore lint/style/noDefaultExport: what an import of a text gives.
  export default text;
}
