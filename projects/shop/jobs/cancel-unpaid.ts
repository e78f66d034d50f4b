// Every night: orders that nobody has paid for two weeks are canceled, and what they ordered goes back into the stock,
// each in one transaction. What a night leaves is done the next one.
const patience = 14 * 24 * 3600 * 1000;

export default async (ctx: { now: Date }) => {
  const before = new Date(ctx.now.getTime() - patience);
  const unpaid = await db.collection('orders').find({ status: 'new', placedAt: { $lt: before } }, { sort: 'placedAt', limit: 100 });
  for (const order of unpaid) {
    await db.transaction(async (tx) => {
      const products = tx.collection('products');
      for (const line of order.lines) {
        const product = await products.findOne({ slug: line.product });
        const at = product ? (product.variants || []).findIndex((v: any) => v.sku === line.variant) : -1;
        if (at >= 0) await products.update(product!.id, { $inc: { [`variants.${at}.stock`]: line.quantity } });
      }
      await tx.collection('orders').update(order.id, { status: 'canceled' });
    });
  }
  console.log(`canceled ${unpaid.length} orders`);
  return { canceled: unpaid.length };
};
