-- Functions with the rights of the owner look for tables in our schema first. Without `pg_temp` in the list, PostgreSQL
-- looks among the temporary tables of the connection before that, and anybody may create those.

alter function principal_of(bytea)    set search_path = reverie, pg_temp;
alter function note_for_recall()      set search_path = reverie, pg_temp;
alter function note_token_use(text)   set search_path = reverie, pg_temp;
