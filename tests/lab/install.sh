#!/bin/sh
# Install the parts of the lab that are missing, where that may be done: as root, on Debian. No service is started, no part that is
# there is touched. Parts that can't be had are named in a line, and the lab goes on without them.
set -u
export DEBIAN_FRONTEND=noninteractive

missing=
while read -r program packages; do
	[ -x "$program" ] || missing="$missing $packages"
done <<'END'
/usr/lib/postgresql/15/bin/postgres postgresql-15
/usr/sbin/pgbouncer pgbouncer
/usr/sbin/nginx nginx
/usr/sbin/postfix postfix
/usr/sbin/saslpasswd2 sasl2-bin
/usr/bin/promtool prometheus
/usr/bin/chromium chromium
/usr/bin/patroni patroni python3-etcd
/usr/bin/etcd etcd-server
END
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "Not here, and only root installs them, by apt-get:$missing" >&2
	exit 0
fi
echo "Installing$missing"
log=$(mktemp)
if [ ! -e /usr/sbin/policy-rc.d ]; then # what is asked before a package starts its services
	trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
fi
echo 'postfix postfix/main_mailer_type select No configuration' | debconf-set-selections
set -- -q -y -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=120
apt-get "$@" update >"$log" 2>&1
failed=
for package in $missing; do # one by one: those that can be had are installed without the others
	apt-get "$@" --no-install-recommends install "$package" >>"$log" 2>&1 || failed="$failed $package"
done
[ -z "$failed" ] || echo "Not to be had:$failed ($(grep '^E:' "$log" | tail -n 1 | cut -c 1-100))" >&2
rm -f "$log"
