// What an article is, in words, for the search shelf: "cooking, bread, short, 2026". Its text is that of the search main.
export default (ctx: Svc.Search) => {
  const { section, tags, minutes, publishedAt } = ctx.doc;
  const words = [section, ...(tags || [])];
  if (minutes) words.push(minutes < 6 ? 'short' : 'long');
  if (publishedAt) words.push(String(publishedAt.getUTCFullYear()));
  return words.filter((w) => w);
};
