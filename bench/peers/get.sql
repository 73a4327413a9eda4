SELECT p.*, g.id, g.name, g.external_id, g.created_at FROM plans p JOIN provider_groups g ON g.id = p.provider_group_id WHERE p.account_id = 1 ORDER BY p.id;
