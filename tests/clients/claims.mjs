// Runs named claims one after another and closes with a line that `tests/run` counts.

/** Far beyond what any of them takes; then something hangs. */
const LIMIT_MS = 20_000;

export async function claims(title, list) {
  let failed = 0;
  for (const [name, hold] of list) {
    const started = Date.now();
    let limit;
    const late = new Promise((_, reject) => {
      limit = setTimeout(() => reject(new Error(`not over after ${LIMIT_MS} ms`)), LIMIT_MS);
    });
    try {
      await Promise.race([hold(), late]);
      console.log(`ok   ${title} ${name} (${Date.now() - started} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${title} ${name}\n${error.stack ?? error}`);
    } finally {
      clearTimeout(limit);
    }
  }
  console.log(`test result: ${failed === 0 ? 'ok' : 'FAILED'}. ${list.length - failed} passed; ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
