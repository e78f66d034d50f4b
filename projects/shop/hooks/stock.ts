// Takes what is ordered out of the stock, in one transaction with the order: it is placed with all its lines, or not at
// all. Orders in bulk are those that staff brings from elsewhere; they take nothing.
export default async (ctx: Svc.PostCreate) => {
  const products = db.collection('products');
  let amount = 0;
  let currency = 'EUR';
  for (const [i, line] of ctx.doc.lines.entries()) {
    // The rule exists has refused what the customer can't see, such as what is not for sale yet.
    const product = await products.findOne({ slug: line.product });
    const at = (product?.variants || []).findIndex((v: any) => v.sku === line.variant);
    const variant = at < 0 ? { stock: 0 } : product.variants[at];
    if (variant.stock < line.quantity) {
      throw ctx.error(409, 'out of stock', [{ path: `lines.${i}.quantity`, rule: 'stock', message: `there are ${variant.stock} left` }]);
    }
    await products.update(product.id, { $inc: { [`variants.${at}.stock`]: -line.quantity } });
    const price = variant.price || product.price;
    amount += price.amount * line.quantity;
    currency = price.currency;
  }
  ctx.doc.total = { amount, currency };
  ctx.doc.placedAt = ctx.now;
};
