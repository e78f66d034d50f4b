#!/bin/sh
# After an installation or an upgrade, of deb, rpm and apk alike: the user of the service, and systemd told of its unit.
# It is not started: whoever installs it says with which settings first.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers svc.conf
elif ! getent passwd svc >/dev/null; then
	if command -v useradd >/dev/null; then
		useradd --system --user-group --home-dir /var/lib/svc --shell /usr/sbin/nologin svc
	else
		addgroup -S svc
		adduser -S -D -H -h /var/lib/svc -s /sbin/nologin -G svc svc
	fi
fi
# Settings may hold secrets: the group of the service reads them, and nobody else.
chgrp svc /etc/svc /etc/svc/svcd.yaml
chmod 0750 /etc/svc
chmod 0640 /etc/svc/svcd.yaml
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart svcd.service # an upgrade; one that doesn't run stays as it is
fi
