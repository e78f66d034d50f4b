package script

// glueFile begins the names of what is ours in stacks: no place in a script.
const glueFile = "svc:"

// The JavaScript sides of the modules. Each is an expression, a function of (call, native).
const (
	glueDB = `(function (call) {
  const opener = (tx) => (name, options) => {
    const target = { collection: String(name), asUser: !!(options && options.asUser) }
    if (tx !== undefined) target.tx = tx
    return {
      find: (filter, options) => call('db.find', target, filter === undefined ? {} : filter, options),
      findOne: (filter, options) => call('db.findOne', target, filter === undefined ? null : filter, options),
      count: (filter, options) => call('db.count', target, filter === undefined ? {} : filter, options),
      aggregate: (pipeline) => call('db.aggregate', target, pipeline),
      insert: (records) => call('db.insert', target, records),
      update: (filter, change) => call('db.update', target, filter, change),
      delete: (filter) => call('db.delete', target, filter),
    }
  }
  return {
    collection: opener(),
    async transaction(work) {
      const tx = await call('db.begin')
      for (;;) {
        let result
        try {
          result = await work({ collection: opener(tx) })
        } catch (e) {
          if (await call('db.rollback', tx)) continue
          throw e
        }
        if (!(await call('db.commit', tx))) return result
      }
    },
  }
})`

	glueSearch = `(function (call) {
  const ask = (op) => (collection, q, options) => {
    const { filter, name, asUser, ...rest } = options || {}
    if (typeof q !== 'string') throw new TypeError(op + ' takes a collection, and the words to look for')
    rest.q = q
    if (name !== undefined) rest.qName = name
    return call(op, { collection: String(collection), asUser: !!asUser }, filter === undefined ? {} : filter, rest)
  }
  return { find: ask('search.find'), count: ask('search.count') }
})`

	glueEmbeddings = `(function (call) {
  const number = (x) => {
    if (typeof x !== 'number') throw new TypeError('embeddings.similarity takes two vectors: what is in them must be numbers')
    return x
  }
  return {
    query: (group, text) => call('embeddings.query', group, text),
    documents: (group, texts) => call('embeddings.documents', group, texts),
    similarity(a, b) {
      const list = Array.isArray(a)
      if (!a || !b || typeof a !== 'object' || typeof b !== 'object' || list !== Array.isArray(b) || (list && a.length !== b.length)) {
        throw new TypeError('embeddings.similarity takes two vectors of one group: two lists of the same length, or two objects')
      }
      let dot = 0, aa = 0, bb = 0
      if (list) {
        for (let i = 0; i < a.length; i++) {
          const x = number(a[i]), y = number(b[i])
          dot += x * y
          aa += x * x
          bb += y * y
        }
      } else {
        for (const token of Object.keys(a)) {
          const x = number(a[token])
          if (Object.prototype.hasOwnProperty.call(b, token)) dot += x * number(b[token])
          aa += x * x
        }
        for (const token of Object.keys(b)) bb += number(b[token]) * b[token]
      }
      return aa === 0 || bb === 0 ? 0 : dot / Math.sqrt(aa) / Math.sqrt(bb)
    },
  }
})`

	glueHTTP = `(function (call, native) {
  return {
    async fetch(url, options) {
      const o = options || {}
      const headers = {}
      for (const name of Object.keys(o.headers || {})) headers[name.toLowerCase()] = String(o.headers[name])
      let body = o.body
      if (body !== undefined && body !== null && typeof body !== 'string' && !(body instanceof Uint8Array)) {
        body = JSON.stringify(body)
        if (!headers['content-type']) headers['content-type'] = 'application/json'
      }
      const answer = await call('http.fetch', { url: String(url), method: o.method, headers, body, timeout: o.timeout })
      return {
        status: answer.status,
        ok: answer.status >= 200 && answer.status < 300,
        url: answer.url,
        headers: answer.headers,
        bytes: () => answer.body,
        text: () => native.text(answer.body),
        json: () => JSON.parse(native.text(answer.body)),
      }
    },
  }
})`

	glueCrypto = `(function (call, native) {
  return {
    hash: native.hash,
    hmac: native.hmac,
    uuid: native.uuid,
    randomBytes: native.randomBytes,
    timingSafeEqual: native.timingSafeEqual,
  }
})`

	glueCache = `(function (call) {
  return {
    get: (key) => call('cache.get', String(key)),
    set: (key, value, options) => call('cache.set', String(key), value === undefined ? null : value, options && options.ttl !== undefined ? options.ttl : null),
    delete: (key) => call('cache.delete', String(key)),
  }
})`

	glueFiles = `(function (call, native) {
  return {
    read: (path) => call('files.read', String(path)),
    readText: async (path) => native.text(await call('files.read', String(path))),
    readJSON: async (path) => JSON.parse(native.text(await call('files.read', String(path)))),
    list: (path) => call('files.list', path === undefined ? '.' : String(path)),
    exists: (path) => call('files.exists', String(path)),
  }
})`

	glueEnv     = `(function (call, native) { return Object.freeze(native.env()) })`
	glueConsole = `(function (call, native) { return native.console() })`
	glueTimers  = `(function (call, native) { return native })`
	glueValues  = `(function (call, native) { return native })`
)
