// What a program does with a client that openapi-typescript and openapi-fetch make of /_openapi/blog: TestOpenAPIClient has it compiled with --strict, and run.
import createClient from 'openapi-fetch';
import type { components, paths } from './blog.js';

declare const process: { argv: string[] };

const [, , baseUrl, token] = process.argv as [string, string, string, string];
const client = createClient<paths>({ baseUrl, headers: { 'X-Admin-Token': token } });

type Draft = components['schemas']['articles.create'];

const must = (ok: boolean, what: string, seen: unknown): void => {
  if (!ok) throw new Error(`${what}: ${JSON.stringify(seen)}`);
};

// Create: what is declared as required has to be there, which the compiler says.
// @ts-expect-error: an article needs a slug, a body, an author and a section
const lacks: Draft = { title: 'By a generated client' };
const draft: Draft = { title: 'By a generated client', slug: 'by-a-generated-client', body: 'Made by a machine.', author: 'ada', section: 'walking', status: 'draft' };
const author = await client.POST('/_/blog/authors', { body: { name: 'Ada', slug: 'ada', email: 'ada@example.com' } });
must(author.response.status === 201, 'create an author', author.error);
const refused = await client.POST('/_/blog/articles', { body: lacks });
must(refused.response.status === 400 && refused.error?.code === 'validation_failed', 'a refusal is typed', refused.error);
const made = await client.POST('/_/blog/articles', { body: draft });
if (!made.data || !('id' in made.data)) throw new Error(`create: ${JSON.stringify(made.error)}`);
const id = made.data.id as string;

// List.
const list = await client.GET('/_/blog/articles', {
  params: { query: { filter: JSON.stringify({ slug: draft.slug }), sort: ['-title', 'id'], select: ['title', 'status'], limit: 5, count: true } },
});
must(list.data?.total === 1 && list.data.items[0]?.title === draft.title && list.data.items[0].body === undefined, 'list', list.data ?? list.error);

// Update, and read.
const changed = await client.PUT('/_/blog/articles/{id}', { params: { path: { id } }, body: { status: 'review', tags: ['robots'] } });
must(changed.response.status === 200, 'update', changed.error);
const read = await client.GET('/_/blog/articles/{id}', { params: { path: { id } } });
must(read.data?.status === 'review' && read.data.tags?.[0] === 'robots' && read.data.title === draft.title, 'read', read.data ?? read.error);

// Delete.
const gone = await client.DELETE('/_/blog/articles/{id}', { params: { path: { id } } });
must(gone.response.ok, 'delete', gone.error);
const none = await client.GET('/_/blog/articles/{id}', { params: { path: { id } } });
must(none.response.status === 404 && none.error?.status === 404, 'it is gone', none.error);

console.log('created, listed, updated and deleted');
