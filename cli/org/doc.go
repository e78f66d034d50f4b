// Package org holds svcctl org: the organizations that users, teams and projects belong to.
package org
