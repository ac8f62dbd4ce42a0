-- Stores of a purpose, where a copied memory came from, and what a request may know of its own organisation.

alter table stores add column is_keyed boolean not null default false;  -- made by its scope and purpose: one of each
create unique index stores_of_a_purpose on stores (scope, purpose) where is_keyed and archived_at is null;

alter table versions add column copied_from jsonb;  -- the store, memory and version that was shared
create index versions_by_session on versions (store_id, session_id, number desc) where session_id is not null;

-- A memory or version belongs to a store that the caller sees, and has its scope. Without this, a row with a scope of
-- the caller could be put into a foreign store: nobody would see it, but it would take a path there.
alter policy own on memories with check (
    scope = any ((select my_scopes())::text[])
    and exists (select from stores s where s.id = memories.store_id and s.scope = memories.scope)
);
alter policy own on versions with check (
    scope = any ((select my_scopes())::text[])
    and exists (select from stores s where s.id = versions.store_id and s.scope = versions.scope)
);

create policy own on organisations for select to reverie_app using (id = (select my_organisation()));
create policy own on people for select to reverie_app using (organisation_id = (select my_organisation()));
create policy own on teams for select to reverie_app using (organisation_id = (select my_organisation()));
create policy own on projects for select to reverie_app using (organisation_id = (select my_organisation()));
grant select on organisations, people, teams, projects to reverie_app;
