/** What was paid for: a resource of an organization. */
type ResourcesTable = {
  organization_id: string;
  /** A hash of what tells it from others: type, URL and tool. */
  resource_key: string;
  /** A `DiscoveredResource` without its time, as JSON. */
  document: string;
  /** Unix milliseconds. */
  updated_at: number;
};

export type DiscoveryTables = { resources: ResourcesTable };
