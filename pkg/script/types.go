package script

import "strings"

// The parts of svc.d.ts that the modules bring.
const (
	typesDB = `/** Filters, changes and options are those of the REST API. */
interface SvcFindOptions {
  sort?: string | string[]
  limit?: number
  offset?: number
  select?: string | string[]
  lookup?: string | string[]
  /** Words to look for by a search of the collection, its first one if qName names none: records come with _score, the best first. */
  q?: string
  qName?: string
  /** With q: _highlights. */
  highlight?: boolean
  /** With q: _explain. */
  explain?: boolean
  /** A language of the collection: words and records are in it. */
  lang?: string
}
interface SvcCollection {
  find(filter?: object, options?: SvcFindOptions): Promise<any[]>
  findOne(filterOrId: object | string | ObjectId, options?: SvcFindOptions): Promise<any | null>
  count(filter?: object, options?: { q?: string; qName?: string; lang?: string }): Promise<number>
  /** Stages of MongoDB 6, on records as they are stored; with asUser, what the API's aggregate gives the caller. */
  aggregate(pipeline: object[]): Promise<any[]>
  insert<T extends object>(records: T[]): Promise<(T & { _id: ObjectId; id: string })[]>
  insert<T extends object>(record: T): Promise<T & { _id: ObjectId; id: string }>
  /** By id: gives the record. By filter: gives how many. The change is a patch, or operators such as {$inc: {n: 1}}. */
  update(filterOrId: object | string | ObjectId, change: object): Promise<any>
  delete(filterOrId: object | string | ObjectId): Promise<number>
}
interface SvcDatabase {
  /** As the service, with all rights; asUser: with the caller's rights, and what the caller may see. */
  collection(name: string, options?: { asUser?: boolean }): SvcCollection
}
declare const db: SvcDatabase & {
  /** All or nothing. work runs again when another writer came between. */
  transaction<T>(work: (tx: SvcDatabase) => Promise<T>): Promise<T>
}
`
	typesSearch = `interface SvcSearchOptions {
  /** One of the collection's searches; without, its first one. */
  name?: string
  filter?: object
  /** With the caller's rights, and what the caller may see. */
  asUser?: boolean
  lang?: string
}
declare const search: {
  /** The records that q finds, the best first, or by sort: collection(…).find with q. What is not committed is not found. */
  find(collection: string, q: string, options?: SvcSearchOptions & { sort?: string | string[]; limit?: number; offset?: number; select?: string | string[]; lookup?: string | string[]; highlight?: boolean; explain?: boolean }): Promise<any[]>
  count(collection: string, q: string, options?: SvcSearchOptions): Promise<number>
}
`
	typesEmbeddings = `/** By the group: dense, or sparse, a weight for each token. */
type SvcVector = number[] | Record<string, number>
declare const embeddings: {
  /** The vector of what is looked for. */
  query(group: string, text: string): Promise<SvcVector>
  /** The vectors of what can be found, of at most 128 texts and 1 MiB; null for a text that is empty or white space. */
  documents(group: string, texts: string[]): Promise<(SvcVector | null)[]>
  /** The cosine of two vectors of one group, from -1 to 1. */
  similarity(a: SvcVector, b: SvcVector): number
}
`
	typesHTTP = `interface SvcResponse {
  status: number
  ok: boolean
  url: string
  headers: Record<string, string>
  bytes(): Uint8Array
  text(): string
  json(): any
}
declare const http: {
  /** Hosts that hook.http.allow names; at most 10 s and 5 MiB. An object as body goes as JSON. */
  fetch(url: string, options?: { method?: string; headers?: Record<string, string>; body?: string | Uint8Array | object; timeout?: number }): Promise<SvcResponse>
}
`
	typesCrypto = `type SvcAlgorithm = 'sha256' | 'sha384' | 'sha512'
type SvcEncoding = 'hex' | 'base64' | 'base64url'
declare const crypto: {
  hash(algorithm: SvcAlgorithm, data: string | Uint8Array, encoding?: SvcEncoding): string
  hash(algorithm: SvcAlgorithm, data: string | Uint8Array, encoding: 'bytes'): Uint8Array
  hmac(algorithm: SvcAlgorithm, key: string | Uint8Array, data: string | Uint8Array, encoding?: SvcEncoding): string
  hmac(algorithm: SvcAlgorithm, key: string | Uint8Array, data: string | Uint8Array, encoding: 'bytes'): Uint8Array
  uuid(): string
  randomBytes(count: number): Uint8Array
  timingSafeEqual(a: string | Uint8Array, b: string | Uint8Array): boolean
}
`
	typesCache = `/** Of this project, in the memory of this instance only; what is old or too much is dropped. ttl is in seconds. */
declare const cache: {
  get(key: string): Promise<any | null>
  set(key: string, value: any, options?: { ttl?: number }): Promise<void>
  delete(key: string): Promise<void>
}
`
	typesFiles = `/** The files of the project's directory, to read. */
declare const files: {
  read(path: string): Promise<Uint8Array>
  readText(path: string): Promise<string>
  readJSON(path: string): Promise<any>
  list(directory?: string): Promise<{ name: string; directory: boolean; size: number }[]>
  exists(path: string): Promise<boolean>
}
`
	typesEnv = `/** The environment variables that hook.env names. */
declare const env: Readonly<Record<string, string | undefined>>
`
	typesConsole = `interface SvcLog {
  debug(...values: any[]): void
  info(...values: any[]): void
  warn(...values: any[]): void
  error(...values: any[]): void
}
declare const console: SvcLog & { log(...values: any[]): void }
`
	typesTimers = `/** Timers run while the script does; those that are left end with it. */
declare function setTimeout(f: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number
declare function setInterval(f: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number
declare function clearTimeout(id?: number): void
declare function clearInterval(id?: number): void
declare function sleep(milliseconds: number): Promise<void>
`
	typesValues = `declare class ObjectId {
  constructor(hex?: string)
  toHexString(): string
  toString(): string
  toJSON(): string
  equals(other: ObjectId | string): boolean
}
declare class Decimal128 {
  constructor(text: string)
  toString(): string
  toJSON(): string
  equals(other: Decimal128 | string): boolean
}
`
	typesCommon = `/** What every ctx has. A stage's own members come beside it. */
interface SvcContextBase {
  log: SvcLog
  /** An error to throw: it ends the request with this status, from 400 to 599, and message. */
  error(status: number, message: string, errors?: { path?: string; rule?: string; message: string }[]): Error
}
`
)

// Types is what scripts find without an import, in TypeScript: the part of svc.d.ts that is the same in every stage.
func Types() string {
	var b strings.Builder
	for _, m := range modules() {
		b.WriteString(m.types)
		b.WriteByte('\n')
	}
	b.WriteString(typesCommon)
	return b.String()
}
