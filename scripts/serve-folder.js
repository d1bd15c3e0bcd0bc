/**
 * Serves one folder's files on loopback, for trying a release with the installers before it is published.
 *
 *   node scripts/serve-folder.js FOLDER PORT
 */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, join } from 'node:path';

const [folder, port] = process.argv.slice(2);
if (!folder || !port) {
  console.error('usage: node scripts/serve-folder.js FOLDER PORT');
  process.exit(20);
}

createServer((request, response) => {
  // Only the last part of the path: nothing outside the folder can be named.
  const file = join(folder, basename(new URL(request.url ?? '/', 'http://localhost').pathname));
  const found = statSync(file, { throwIfNoEntry: false });
  if (!found?.isFile()) return response.writeHead(404).end();
  response.writeHead(200, { 'content-length': found.size });
  createReadStream(file).pipe(response);
}).listen(Number(port), '127.0.0.1');
