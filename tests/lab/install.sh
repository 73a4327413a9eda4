#!/bin/sh
# Install the parts of the lab that are missing, where that may be done: as root, on Debian. No service is started, no part that is
# there is touched. A part that can't be had is named in a line, and the lab goes on without it.
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
/usr/sbin/saslpasswd2 sasl2-bin libsasl2-modules
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
log=$(mktemp)
if [ ! -e /usr/sbin/policy-rc.d ]; then # what is asked before a package starts its services
	trap 'rm -f /usr/sbin/policy-rc.d' EXIT
	printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d
fi
echo 'postfix postfix/main_mailer_type select No configuration' | debconf-set-selections
apt-get update >"$log" 2>&1
for package in $missing; do
	apt-get install -y -q --no-install-recommends "$package" >>"$log" 2>&1 ||
		echo "Not to be had: $package ($(grep '^E:' "$log" | tail -n 1 | cut -c 1-100))" >&2
done
rm -f "$log"
