CREATE TABLE tokkuri_schema (version bigint NOT NULL);
INSERT INTO tokkuri_schema VALUES (0);

CREATE TABLE tokkuri_kept (name text PRIMARY KEY, value bytea NOT NULL);

-- The database's time in milliseconds.
CREATE FUNCTION tokkuri_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- How late it has been: nodes raise this with every lease, so that time goes on from there although the machine's clock was set back.
CREATE TABLE tokkuri_clock (at bigint NOT NULL);
INSERT INTO tokkuri_clock VALUES (0);

-- The columns are what is asked for; task is the whole of it as JSON, but that created and updated are the columns'. It is bytes,
-- since text has no U+0000. owner is a digest: owners may be of any length and hold any character, an index key may not.
-- Times beyond the largest bigint are kept as that.
CREATE TABLE tokkuri_tasks (
    id       bytea    NOT NULL CONSTRAINT tokkuri_task PRIMARY KEY,
    revision bigint   NOT NULL,
    status   smallint NOT NULL,
    owner    bytea    NOT NULL,
    tool     bytea    NOT NULL,
    node     bigint   NOT NULL,
    attempt  bigint   NOT NULL,
    created  bigint   NOT NULL,
    updated  bigint   NOT NULL,
    touched  bigint   NOT NULL,
    expires  bigint   NOT NULL,
    slot     bytea,
    task     bytea    NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
CREATE INDEX tokkuri_due ON tokkuri_tasks (expires, id);
CREATE INDEX tokkuri_live_of_owner ON tokkuri_tasks (owner, expires) WHERE status < 2;
CREATE INDEX tokkuri_live_on_node ON tokkuri_tasks (node, id) WHERE status < 2;
CREATE INDEX tokkuri_touched_on_node ON tokkuri_tasks (node, touched);

-- So long after that moment; the end of time if it would be past it.
CREATE FUNCTION tokkuri_after(moment bigint, ms bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN ms < 9223372036854775807 - moment THEN moment + ms ELSE 9223372036854775807 END $$;

-- node is who it is, as JSON.
CREATE TABLE tokkuri_nodes (
    id           bigint PRIMARY KEY,
    node         bytea  NOT NULL,
    leased_until bigint NOT NULL,
    runs         bigint NOT NULL,
    queued       bigint NOT NULL,
    drain        bigint
);

-- Of each of these three: whoever changes a node's row has locked it before it reads the time, so that a lease which somebody who had
-- to wait sees extended was extended in time, and one that somebody saw run out stays so. The clock's row comes last.

CREATE FUNCTION tokkuri_join(
    p_floor bigint, p_id bigint, p_node bytea, p_lease bigint, p_remembered bigint,
    OUT now bigint, OUT until bigint, OUT drain bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM tokkuri_nodes AS n WHERE n.id = p_id FOR UPDATE;
    now := greatest(p_floor, tokkuri_ms(), (SELECT c.at FROM tokkuri_clock AS c));
    DELETE FROM tokkuri_nodes AS n WHERE n.leased_until <= now - p_remembered;
    INSERT INTO tokkuri_nodes AS n VALUES (p_id, p_node, tokkuri_after(now, p_lease), 0, 0, NULL)
        ON CONFLICT (id) DO UPDATE SET leased_until = excluded.leased_until WHERE n.leased_until > now
        RETURNING n.leased_until, n.drain INTO until, drain;
    UPDATE tokkuri_clock AS c SET at = now WHERE c.at < now;
END $$;

CREATE FUNCTION tokkuri_renew(
    p_floor bigint, p_id bigint, p_runs bigint, p_queued bigint, p_lease bigint,
    OUT now bigint, OUT until bigint, OUT drain bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM tokkuri_nodes AS n WHERE n.id = p_id FOR UPDATE;
    now := greatest(p_floor, tokkuri_ms(), (SELECT c.at FROM tokkuri_clock AS c));
    UPDATE tokkuri_nodes AS n SET leased_until = tokkuri_after(now, p_lease), runs = p_runs, queued = p_queued
        WHERE n.id = p_id AND n.leased_until > now
        RETURNING n.leased_until, n.drain INTO until, drain;
    UPDATE tokkuri_clock AS c SET at = now WHERE c.at < now;
END $$;

CREATE FUNCTION tokkuri_drain(p_floor bigint, p_id bigint, p_drain bigint, OUT now bigint, OUT known boolean)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM FROM tokkuri_nodes AS n WHERE n.id = p_id FOR UPDATE;
    now := greatest(p_floor, tokkuri_ms());
    UPDATE tokkuri_nodes AS n
        SET drain = CASE WHEN p_drain IS NOT NULL THEN tokkuri_after(now, p_drain) END
        WHERE n.id = p_id AND n.leased_until > now;
    known := FOUND;
END $$;

-- Inserts tasks of one owner, in turn; what comes of each: 0 inserted, 1 there is a row of this id, 2 at the limit.
--
-- Whoever counts holds the owner's lock until its rows are committed. Each statement of a volatile function sees what was committed
-- before that statement, so the count sees all rows of those who held the lock before.
CREATE FUNCTION tokkuri_insert(
    p_floor bigint, p_lock bigint, p_owner bytea, p_ids bytea[], p_limits bigint[], p_nodes bigint[], p_tools bytea[],
    p_ttls bigint[], p_tasks bytea[], OUT now bigint, OUT came smallint[]
) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    live bigint := 0;
    most bigint;
BEGIN
    SELECT max(l) INTO most FROM unnest(p_limits) AS l;
    IF most IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock(p_lock);
    END IF;
    now := greatest(p_floor, tokkuri_ms());
    IF most IS NOT NULL THEN
        SELECT count(*) INTO live FROM (
            SELECT FROM tokkuri_tasks AS t WHERE t.owner = p_owner AND t.status < 2 AND t.expires > now LIMIT most
        ) AS counted;
    END IF;
    FOR n IN 1 .. array_length(p_ids, 1) LOOP
        IF p_limits[n] <= live THEN
            came[n] := CASE WHEN EXISTS (SELECT FROM tokkuri_tasks AS t WHERE t.id = p_ids[n]) THEN 1 ELSE 2 END;
        ELSE
            INSERT INTO tokkuri_tasks VALUES (
                p_ids[n], 1, 0, p_owner, p_tools[n], p_nodes[n], 1, now, now, now,
                tokkuri_after(now, p_ttls[n]),
                NULL, p_tasks[n]
            ) ON CONFLICT (id) DO NOTHING;
            IF FOUND THEN
                live := live + 1;
                came[n] := 0;
            ELSE
                came[n] := 1;
            END IF;
        END IF;
    END LOOP;
END $$;
