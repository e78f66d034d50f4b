// Readers see active pages. Who knows the key of the environment variable BLOG_PREVIEW sees the others, too:
// GET …/pages?preview=<key>
export default (ctx: SvcContext) => {
  const known = env.BLOG_PREVIEW && ctx.query.preview && crypto.timingSafeEqual(crypto.hash('sha256', ctx.query.preview), crypto.hash('sha256', env.BLOG_PREVIEW));
  return known ? {} : { active: true };
};
