import { slugOf } from '../lib/slug';

// An article without an address gets one of its title; a second article of that title gets -2, and so on.
export default async (ctx: Svc.PostBind) => {
  if (ctx.data.slug || typeof ctx.data.title !== 'string') return;
  const wish = slugOf(ctx.data.title);
  const taken = new Set((await db.collection('articles').find({ slug: { $regex: `^${wish}(-[0-9]+)?$` } }, { select: 'slug' })).map((a) => a.slug));
  let slug = wish;
  for (let n = 2; taken.has(slug); n++) slug = `${wish}-${n}`;
  ctx.data.slug = slug;
};
