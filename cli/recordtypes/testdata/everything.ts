// Types of the project everything, written by svcctl types. Don't edit: write them anew.

export type One = {
  id: string;
  text?: string;
  createdAt?: string;
  updatedAt?: string;
  createdBy?: string;
  updatedBy?: string;
  /** Grows with each change. */
  _rev?: number;
};

export type OneCreate = {
  text?: string | null;
};

export type OneUpdate = {
  text?: string | null;
  /** Where another one is stored, nothing is changed: 412. */
  _rev?: number;
};

export type People = {
  id: string;
  name?: string;
  createdAt?: string;
  updatedAt?: string;
  createdBy?: string;
  updatedBy?: string;
  /** Grows with each change. */
  _rev?: number;
};

export type PeopleCreate = {
  name?: string | null;
};

export type PeopleUpdate = {
  name?: string | null;
  /** Where another one is stored, nothing is changed: 412. */
  _rev?: number;
};

export type Things = {
  id: string;
  /** Titel
   * Kurz. */
  title?: string;
  slug?: string;
  kind?: "big" | "small";
  code?: string;
  odd?: string;
  prefixed?: string;
  suffixed?: string;
  mail?: string;
  site?: string;
  uid?: string;
  rank?: number;
  size?: number;
  level?: number;
  fixed?: boolean;
  /** @deprecated */
  from?: string;
  until?: string;
  words?: Array<string>;
  picks?: Array<"abc" | "a">;
  numbers?: Array<number>;
  owner?: string | People | null;
  helpers?: Array<string | People>;
  picture?: SvcFile;
  papers?: Array<SvcFile>;
  free?: { [key: string]: unknown };
  nested?: {
    text?: string;
    inside?: {
      deep?: number;
    };
  };
  rows?: Array<{
    cell?: string;
  }>;
  whatever?: unknown;
  fixedByUs?: string;
  canary?: string;
  _i18n?: {
    de?: {
      /** Titel
       * Kurz. */
      title?: string;
      slug?: string;
      kind?: "big" | "small";
      code?: string;
      odd?: string;
      prefixed?: string;
      suffixed?: string;
      mail?: string;
      site?: string;
      uid?: string;
      words?: Array<string>;
      picks?: Array<"abc" | "a">;
      free?: { [key: string]: unknown };
      nested?: {
        text?: string;
        inside?: {
          deep?: number;
        };
      };
      rows?: Array<{
        cell?: string;
      }>;
      whatever?: unknown;
      fixedByUs?: string;
      canary?: string;
    };
  };
  createdAt?: string;
  updatedAt?: string;
  createdBy?: string;
  updatedBy?: string;
  /** Grows with each change. */
  _rev?: number;
  /** With q: the higher, the better. */
  _score?: number;
  /** With highlight=true: by field, texts in which what was found is marked. */
  _highlights?: { [key: string]: unknown };
};

export type ThingsCreate = {
  /** Titel
   * Kurz. */
  title: string;
  slug: string;
  kind?: "big" | "small" | null;
  code?: string | null;
  odd?: string | null;
  prefixed?: string | null;
  suffixed?: string | null;
  mail?: string | null;
  site?: string | null;
  uid?: string | null;
  rank?: number | null;
  size?: number | null;
  level?: 1 | 2.5 | 7 | null;
  fixed?: true | null;
  /** @deprecated */
  from?: string | null;
  until?: string | null;
  words?: Array<string> | null;
  picks?: Array<"abc" | "a"> | null;
  numbers: Array<number>;
  owner?: string | null;
  helpers?: Array<string> | null;
  picture?: SvcFileInput | null;
  papers?: Array<SvcFileInput> | null;
  free?: { [key: string]: unknown } | null;
  nested?: {
    text: string;
    inside?: {
      deep?: number | null;
    } | null;
  } | null;
  rows?: Array<{
    cell?: string | null;
  }> | null;
  whatever?: unknown;
  canary?: string | null;
  _i18n?: {
    de?: {
      /** Titel
       * Kurz. */
      title?: string;
      slug?: string;
      kind?: "big" | "small" | null;
      code?: string | null;
      odd?: string | null;
      prefixed?: string | null;
      suffixed?: string | null;
      mail?: string | null;
      site?: string | null;
      uid?: string | null;
      words?: Array<string> | null;
      picks?: Array<"abc" | "a"> | null;
      free?: { [key: string]: unknown } | null;
      nested?: {
        text?: string;
        inside?: {
          deep?: number | null;
        } | null;
      } | null;
      rows?: Array<{
        cell?: string | null;
      }> | null;
      whatever?: unknown;
      canary?: string | null;
    };
  };
};

export type ThingsUpdate = {
  /** Titel
   * Kurz. */
  title?: string;
  slug?: string;
  kind?: "big" | "small" | null;
  code?: string | null;
  odd?: string | null;
  prefixed?: string | null;
  suffixed?: string | null;
  mail?: string | null;
  site?: string | null;
  uid?: string | null;
  rank?: number | null;
  size?: number | null;
  level?: 1 | 2.5 | 7 | null;
  fixed?: true | null;
  /** @deprecated */
  from?: string | null;
  until?: string | null;
  words?: Array<string> | null;
  picks?: Array<"abc" | "a"> | null;
  numbers?: Array<number>;
  owner?: string | null;
  helpers?: Array<string> | null;
  picture?: SvcFileChange | null;
  papers?: Array<SvcFileChange> | null;
  free?: { [key: string]: unknown } | null;
  nested?: {
    text?: string;
    inside?: {
      deep?: number | null;
    } | null;
  } | null;
  rows?: Array<{
    cell?: string | null;
  }> | null;
  whatever?: unknown;
  canary?: string | null;
  _i18n?: {
    de?: {
      /** Titel
       * Kurz. */
      title?: string;
      slug?: string;
      kind?: "big" | "small" | null;
      code?: string | null;
      odd?: string | null;
      prefixed?: string | null;
      suffixed?: string | null;
      mail?: string | null;
      site?: string | null;
      uid?: string | null;
      words?: Array<string> | null;
      picks?: Array<"abc" | "a"> | null;
      free?: { [key: string]: unknown } | null;
      nested?: {
        text?: string;
        inside?: {
          deep?: number | null;
        } | null;
      } | null;
      rows?: Array<{
        cell?: string | null;
      }> | null;
      whatever?: unknown;
      canary?: string | null;
    };
  };
  /** Where another one is stored, nothing is changed: 412. */
  _rev?: number;
};

export type SvcFile = {
  /** The path that it is at. */
  src?: string;
  /** Its name. */
  path?: string;
  /** In bytes. */
  size?: number;
  /** Media type, by its content. */
  type?: string;
  width?: number;
  height?: number;
  /** SHA-256. */
  hash?: string;
  alt?: string;
};

/** A file. It may come as a part of a form as well, whose name is the path of the field. */
export type SvcFileInput = {
  /** A data URL, or the address of a file that the field has already. */
  src: string;
  /** Its name. */
  path: string;
  alt?: string;
};

/** Of a file that is there, or comes as a part of the form: what is not given stays as it is. */
export type SvcFileChange = {
  /** A data URL, or the address of a file that the field has already. */
  src?: string;
  /** Its name. */
  path?: string;
  alt?: string;
};
