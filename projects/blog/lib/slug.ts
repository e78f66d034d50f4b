// slugOf makes a text one that fits the rule slug: lower-case letters, digits and single hyphens.
export const slugOf = (text: string): string =>
  text.normalize('NFD').toLowerCase().replace(/[^a-z0-9\s-]/g, '').trim().replace(/[\s-]+/g, '-').slice(0, 70) || 'untitled';
