/** A resource that an organization was paid for. */
type ResourcesTable = {
  organization_id: string;
  /** A hash of type, URL and tool, which identify the resource. */
  resource_key: string;
  /** A `DiscoveredResource` without its time, as JSON. */
  document: string;
  /** Unix milliseconds. */
  updated_at: number;
};

export type DiscoveryTables = { resources: ResourcesTable };
