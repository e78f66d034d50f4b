// The types of scripts of svc. Written by the service from its own tables: don't edit it.
// A script names the stage it is for: export default (ctx: Svc.PostBind) => { … }

/** Filters, changes and options are those of the REST API. */
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

interface SvcSearchOptions {
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

/** By the group: dense, or sparse, a weight for each token. */
type SvcVector = number[] | Record<string, number>
declare const embeddings: {
  /** The vector of what is looked for. */
  query(group: string, text: string): Promise<SvcVector>
  /** The vectors of what can be found, of at most 128 texts and 1 MiB; null for a text that is empty or white space. */
  documents(group: string, texts: string[]): Promise<(SvcVector | null)[]>
  /** The cosine of two vectors of one group, from -1 to 1. */
  similarity(a: SvcVector, b: SvcVector): number
}

interface SvcResponse {
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

type SvcAlgorithm = 'sha256' | 'sha384' | 'sha512'
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

/** Of this project, in the memory of this instance only; what is old or too much is dropped. ttl is in seconds. */
declare const cache: {
  get(key: string): Promise<any | null>
  set(key: string, value: any, options?: { ttl?: number }): Promise<void>
  delete(key: string): Promise<void>
}

/** The files of the project's directory, to read. */
declare const files: {
  read(path: string): Promise<Uint8Array>
  readText(path: string): Promise<string>
  readJSON(path: string): Promise<any>
  list(directory?: string): Promise<{ name: string; directory: boolean; size: number }[]>
  exists(path: string): Promise<boolean>
}

/** The environment variables that hook.env names. */
declare const env: Readonly<Record<string, string | undefined>>

interface SvcLog {
  debug(...values: any[]): void
  info(...values: any[]): void
  warn(...values: any[]): void
  error(...values: any[]): void
}
declare const console: SvcLog & { log(...values: any[]): void }

/** Timers run while the script does; those that are left end with it. */
declare function setTimeout(f: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number
declare function setInterval(f: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number
declare function clearTimeout(id?: number): void
declare function clearInterval(id?: number): void
declare function sleep(milliseconds: number): Promise<void>

declare class ObjectId {
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

/** What every ctx has. A stage's own members come beside it. */
interface SvcContextBase {
  log: SvcLog
  /** An error to throw: it ends the request with this status, from 400 to 599, and message. */
  error(status: number, message: string, errors?: { path?: string; rule?: string; message: string }[]): Error
}

interface SvcUser {
  kind: string
  id: string | null
  name: string
  isAdmin: boolean
  orgIds: string[]
  teamIds: string[]
  teams: string[]
}
type SvcDoc = Record<string, any>

/** What every stage has. */
interface SvcContext extends SvcContextBase {
  /** The operation: GET, POST, PUT or DELETE. */
  readonly method: string
  /** Where the script runs, such as post.create. */
  readonly stage: string
  /** The query parameters of the request. */
  readonly query: Record<string, string>
  /** The headers of the request in lower case, without credentials. */
  readonly headers: Record<string, string>
  /** Who is calling; null is nobody. */
  readonly user: SvcUser | null
  /** The project. */
  readonly project: { namespace: string; generation: number }
  /** The name of the collection. */
  readonly collection: string
  /** The language that was asked for. */
  readonly lang: string | null
  /** The time of the operation. */
  readonly now: Date
  /** Kept from stage to stage of one operation. */
  state: Record<string, any>
}

/** What every stage of an action has: query and data are of the types that its config declares. */
interface SvcActionContext extends Omit<SvcContext, 'collection' | 'query'> {
  readonly query: Record<string, any>
}

declare namespace Svc {
  /** get.handle: before the read, and in its place if it returns something. */
  interface GetHandle extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The caller's filter, of a list; null in a single read. */
    readonly filter: SvcDoc | null
  }
  /** get.read: behind the store, with records as they are stored. */
  interface GetRead extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The record as it is stored; of the audit stage the entry. */
    doc: SvcDoc
    /** The records as they are stored. */
    docs: SvcDoc[]
  }
  /** get.return: before the answer goes out, with records as the caller sees them. */
  interface GetReturn extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items?: any[]; [name: string]: any }
  }
  /** get.file: before a file goes out; an error refuses it. */
  interface GetFile extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The record as it is stored; of the audit stage the entry. */
    readonly doc: SvcDoc
    /** The field that holds the file. */
    readonly field: string
    /** The file's name; of a validator the path of the field. */
    readonly path: string
  }
  /** post.bind: with the body as the caller sent it. */
  interface PostBind extends SvcContext {
    /** What the caller sent. */
    data: SvcDoc
  }
  /** post.validate: behind the checks of types and rules; what it returns are problems. */
  interface PostValidate extends SvcContext {
    /** The record as it is stored; of the audit stage the entry. */
    readonly doc: SvcDoc
  }
  /** post.handle: before the insert, and in its place if it returns the record to answer. */
  interface PostHandle extends SvcContext {
    /** The record as it is stored; of the audit stage the entry. */
    readonly doc: SvcDoc
  }
  /** post.create: within the write, last before the insert. */
  interface PostCreate extends SvcContext {
    /** The record as it is stored; of the audit stage the entry. */
    doc: SvcDoc
  }
  /** post.return: behind the write, with the record as the caller sees it. */
  interface PostReturn extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items?: any[]; [name: string]: any }
  }
  /** post.bulkCreate: within a bulk write, before the inserts. */
  interface PostBulkCreate extends SvcContext {
    /** The records as they are stored. */
    docs: SvcDoc[]
  }
  /** post.bulkReturn: behind a bulk write, with its answer as the caller sees it. */
  interface PostBulkReturn extends SvcContext {
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items: any[]; [name: string]: any }
  }
  /** put.bind: with the body as the caller sent it. */
  interface PutBind extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** What the caller sent. */
    data: SvcDoc
    /** The record before the change; of a bulk stage the list of them. */
    readonly previous: SvcDoc
  }
  /** put.validate: behind the checks of types and rules; what it returns are problems. */
  interface PutValidate extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The record as it is stored; of the audit stage the entry. */
    readonly doc: SvcDoc
    /** The record before the change; of a bulk stage the list of them. */
    readonly previous: SvcDoc
  }
  /** put.update: within the write, last before the record is replaced. */
  interface PutUpdate extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The record as it is stored; of the audit stage the entry. */
    doc: SvcDoc
    /** The record before the change; of a bulk stage the list of them. */
    readonly previous: SvcDoc
  }
  /** put.return: behind the write, with the record as the caller sees it. */
  interface PutReturn extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items?: any[]; [name: string]: any }
  }
  /** put.bulkUpdate: within a bulk write, before the records are replaced. */
  interface PutBulkUpdate extends SvcContext {
    /** The records as they are stored. */
    docs: SvcDoc[]
    /** The record before the change; of a bulk stage the list of them. */
    readonly previous: SvcDoc[]
  }
  /** put.bulkReturn: behind a bulk write, with its answer as the caller sees it. */
  interface PutBulkReturn extends SvcContext {
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items: any[]; [name: string]: any }
  }
  /** delete.delete: within the write, last before the record goes; an error keeps it. */
  interface DeleteDelete extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The record as it is stored; of the audit stage the entry. */
    readonly doc: SvcDoc
  }
  /** delete.return: behind the write. */
  interface DeleteReturn extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items?: any[]; [name: string]: any }
  }
  /** delete.bulkDelete: within a bulk write, before the records go; an error keeps them. */
  interface DeleteBulkDelete extends SvcContext {
    /** The records as they are stored. */
    readonly docs: SvcDoc[]
  }
  /** delete.bulkReturn: behind a bulk write, with its answer. */
  interface DeleteBulkReturn extends SvcContext {
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: { items: any[]; [name: string]: any }
  }
  /** audit.return: before an entry of the audit log is written. */
  interface AuditReturn extends SvcContext {
    /** The record's id; null in a list. */
    readonly id: string | null
    /** The record as it is stored; of the audit stage the entry. */
    doc: SvcDoc
  }
  /** filter: what a permission set's filter is made by; it returns a filter object. */
  interface Filter extends SvcContext {
  }
  /** validator: a validator, behind the value as its first argument; it returns a message, or nothing. */
  interface Validator extends SvcContext {
    /** The record as it is stored; of the audit stage the entry. */
    readonly doc: SvcDoc
    /** The file's name; of a validator the path of the field. */
    readonly path: string
  }
  /** action.validate: behind the checks of query and data; what it returns are problems. */
  interface ActionValidate extends SvcActionContext {
    /** What the caller sent. */
    readonly data: SvcDoc
    /** The name of the action. */
    readonly action: string
  }
  /** action.handle: does it; what it returns is the answer. */
  interface ActionHandle extends SvcActionContext {
    /** What the caller sent. */
    readonly data: SvcDoc
    /** The name of the action. */
    readonly action: string
    /** The run, of an async action or one that streams. */
    readonly run: { id: string } | null
    /** Says how far a run is. */
    readonly progress: (at: string | { phase?: string; done?: number; total?: number; message?: string }) => void
    /** How the answer of an action goes out. */
    response: { status: number; type: string | null; headers: Record<string, string> }
  }
  /** action.return: before the answer goes out. */
  interface ActionReturn extends SvcActionContext {
    /** What the caller sent. */
    readonly data: SvcDoc
    /** What the caller gets: a record, or {items: [...]} of a list or a bulk write. */
    result: any
    /** The name of the action. */
    readonly action: string
    /** The run, of an async action or one that streams. */
    readonly run: { id: string } | null
    /** Says how far a run is. */
    readonly progress: (at: string | { phase?: string; done?: number; total?: number; message?: string }) => void
    /** How the answer of an action goes out. */
    response: { status: number; type: string | null; headers: Record<string, string> }
  }
  /** The eval of a search: gives the text of a record that is searched, or a list of texts. */
  interface Search extends SvcContextBase {
    readonly collection: string
    /** The language whose text is asked for; '' is that of the fields themselves. */
    readonly lang: string
    /** The fields of the search, and nothing else of the record. */
    readonly doc: SvcDoc
  }
  /** A job. */
  interface Job extends SvcContextBase {
    /** The job and its run; slot is the time that was due. */
    readonly job: { name: string; run: string; trigger: 'schedule' | 'manual'; slot?: Date }
    /** Says how far a run is. */
    readonly progress: (at: string | { phase?: string; done?: number; total?: number; message?: string }) => void
    /** The project. */
    readonly project: { namespace: string; generation: number }
    /** The time of the operation. */
    readonly now: Date
    /** Kept from stage to stage of one operation. */
    state: Record<string, any>
  }
}
