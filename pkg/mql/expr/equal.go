package expr

// Equalities calls fn for the paths of the document that have to be equal to what does not depend on the document, for the
// expression to be true. value computes that, with the variables that are bound outside.
func (e *Expr) Equalities(fn func(path string, value *Expr)) { equalities(e.root, fn) }

func equalities(n node, fn func(path string, value *Expr)) {
	switch n := n.(type) {
	case *logic:
		if n.decides {
			return
		}
		for _, operand := range n.operands {
			equalities(operand, fn)
		}
	case *binaryCall:
		if n.name != "$eq" {
			return
		}
		for _, side := range [...][2]node{{n.a, n.b}, {n.b, n.a}} {
			path, ok := side[0].(*rootPath)
			if ok && path.path != "" && isFree(side[1]) {
				fn(path.path, &Expr{root: side[1]})
			}
		}
	}
}

// isFree says whether a node has one value for all documents.
func isFree(n node) bool {
	free := true
	walkPaths(n, func(variable, _ string) { free = free && variable != "ROOT" })
	return free && !isRandom(n)
}

func isRandom(n node) bool {
	_, found := n.(random)
	_ = n.each(func(p *node) error {
		found = found || isRandom(*p)
		return nil
	})
	return found
}
