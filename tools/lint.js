// Checks the syntax of what is on standard input; the argument is the name of the file. TypeScript, and what has elements
// in it, takes the package typescript of the project or of the machine.
const fs = require('fs'), path = require('path'), {spawnSync} = require('child_process');
const name = process.argv[1], text = fs.readFileSync(0);
const unable = (why) => { console.error(why); process.exit(77); };
if (/\.[cm]?js$/.test(name)) {
  const modules = (text) => /^\s*(import\s*[\w{*'"]|export\s+)/m.test(text);
  const kind = name.endsWith('.mjs') || (!name.endsWith('.cjs') && modules(text.toString())) ? 'module' : 'commonjs';
  let problem = null;
  if (kind === 'commonjs') {
    try {
      new (require('vm').Script)('(function (exports, require, module, __filename, __dirname) {' +
        text.toString().replace(/^\uFEFF/, '').replace(/^#!.*/, '') + '\n})', {filename: 'file'});
    } catch (e) { problem = e; }
    if (problem) {
      const at = /^file:(\d+)/.exec(problem.stack);
      console.error((at ? `line ${at[1]}: ` : '') + `${problem.name}: ${problem.message}`);
      process.exit(1);
    }
  } else {
    const done = spawnSync(process.execPath, ['--experimental-vm-modules', '--no-warnings', '-e', `
      const text = require('fs').readFileSync(0, 'utf8').replace(/^\\uFEFF/, '').replace(/^#!.*/, '');
      try { new (require('vm').SourceTextModule)(text, {identifier: 'file'}); } catch (e) {
        const at = /^file:(\\d+)/.exec(e.stack);
        console.error((at ? 'line ' + at[1] + ': ' : '') + e.name + ': ' + e.message);
        process.exit(1);
      }`], {input: text, encoding: 'utf8'});
    process.stderr.write(done.stderr || '');
    process.exit(done.status === null ? 77 : done.status);
  }
} else {
  let ts = null;
  const places = [path.dirname(name), process.cwd(), ...(process.env.PATH || '').split(':').map((bin) => bin + '/../lib')];
  try { ts = require(require.resolve('typescript', {paths: places})); } catch { unable('typescript is not installed'); }
  const done = ts.transpileModule(text.toString(), {fileName: path.basename(name), reportDiagnostics: true,
    compilerOptions: {jsx: ts.JsxEmit.Preserve, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext}});
  const problems = (done.diagnostics || []).map((d) => {
    const line = d.file && d.start !== undefined ? `line ${d.file.getLineAndCharacterOfPosition(d.start).line + 1}: ` : '';
    return line + ts.flattenDiagnosticMessageText(d.messageText, '\n');
  });
  if (problems.length) { console.error(problems.slice(0, 10).join('\n')); process.exit(1); }
}
