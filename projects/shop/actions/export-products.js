// All products as CSV, page by page, with progress.
const columns = {
  sku: (p) => p.sku,
  name: (p) => p.name,
  category: (p) => p.category,
  price: (p) => p.price && p.price.amount,
  currency: (p) => p.price && p.price.currency,
  stock: (p) => (p.variants || []).reduce((sum, v) => sum + v.stock, 0),
}
const pageSize = 100

module.exports = async (ctx) => {
  const { category, separator } = ctx.data
  const products = db.collection('products', { asUser: true }) // what the caller may see
  const filter = category ? { category } : {}
  const total = await products.count(filter)
  const lines = [Object.keys(columns).join(separator)]
  for (let done = 0; done < total; ) {
    const page = await products.find(filter, { sort: 'sku', limit: pageSize, offset: done })
    if (page.length === 0) break
    for (const p of page) lines.push(Object.values(columns).map((value) => cell(value(p), separator)).join(separator))
    done += page.length
    ctx.progress({ phase: 'export', done, total, message: `${done} of ${total} products` })
  }
  ctx.response.type = 'text/csv; charset=utf-8'
  ctx.response.headers['Content-Disposition'] = 'attachment; filename="products.csv"'
  return lines.join('\r\n') + '\r\n'
}

// A cell that a spreadsheet would take for a formula begins with an apostrophe.
function cell(value, separator) {
  if (value === null || value === undefined) return ''
  let text = String(value)
  if (/^[=+\-@\t\r]/.test(text) && typeof value !== 'number') text = "'" + text
  return /["\r\n]/.test(text) || text.includes(separator) ? '"' + text.replaceAll('"', '""') + '"' : text
}
