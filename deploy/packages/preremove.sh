#!/bin/sh
# Before the package goes. An upgrade (deb: upgrade, rpm and apk: 1) leaves the service running until it is restarted; data, settings and the
# user stay in any case.
set -e
case ${1:-remove} in
upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now svcd.service
fi
