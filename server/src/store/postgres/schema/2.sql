-- The drain that a node knew of when it last renewed its lease: what else it said then is from after it took its last task.
ALTER TABLE tokkuri_nodes ADD COLUMN heeds bigint;

-- Beside the one without p_heeds, for the nodes of the version before.
CREATE FUNCTION tokkuri_renew(
    p_floor bigint, p_id bigint, p_runs bigint, p_queued bigint, p_heeds bigint, p_lease bigint,
    OUT now bigint, OUT until bigint, OUT drain bigint
) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    -- The rules of the functions that it is one of, in 1.sql.
    PERFORM FROM tokkuri_nodes AS n WHERE n.id = p_id FOR UPDATE;
    now := greatest(p_floor, tokkuri_ms(), (SELECT c.at FROM tokkuri_clock AS c));
    UPDATE tokkuri_nodes AS n
        SET leased_until = tokkuri_after(now, p_lease), runs = p_runs, queued = p_queued, heeds = p_heeds
        WHERE n.id = p_id AND n.leased_until > now
        RETURNING n.leased_until, n.drain INTO until, drain;
    UPDATE tokkuri_clock AS c SET at = now WHERE c.at < now;
END $$;
