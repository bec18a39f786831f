package lua

import "github.com/yuin/gopher-lua/ast"

// The machine takes memory in single instructions that can not be stopped half-way: doubling a text forty times is forty
// instructions. So what takes memory is rewritten, before it is compiled, into calls of functions that count first.

func rewriteBlock(block []ast.Stmt) []ast.Stmt {
	for i, stmt := range block {
		block[i] = rewriteStmt(stmt)
	}
	return block
}

func rewriteStmt(stmt ast.Stmt) ast.Stmt {
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		return rewriteAssign(s)
	case *ast.LocalAssignStmt:
		rewriteLocal(s)
	case *ast.FuncCallStmt:
		s.Expr = rewrite(s.Expr)
	case *ast.DoBlockStmt:
		rewriteBlock(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = rewrite(s.Condition)
		rewriteBlock(s.Stmts)
	case *ast.RepeatStmt:
		s.Condition = rewrite(s.Condition)
		rewriteBlock(s.Stmts)
	case *ast.IfStmt:
		s.Condition = rewrite(s.Condition)
		rewriteBlock(s.Then)
		rewriteBlock(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit, s.Step = rewrite(s.Init), rewrite(s.Limit), rewrite(s.Step)
		rewriteBlock(s.Stmts)
	case *ast.GenericForStmt:
		rewriteList(s.Exprs)
		rewriteBlock(s.Stmts)
	case *ast.FuncDefStmt:
		rewriteBlock(s.Func.Stmts)
	case *ast.ReturnStmt:
		rewriteList(s.Exprs)
	}
	return stmt
}

// rewriteLocal leaves a function in place: only so can it call itself by its name.
func rewriteLocal(s *ast.LocalAssignStmt) {
	if len(s.Exprs) == 1 {
		if function, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			rewriteBlock(function.Stmts)
			return
		}
	}
	rewriteList(s.Exprs)
}

// rewriteAssign turns the assignment of one element into a call. With several at once the order in which Lua evaluates
// them must stay, so that only their keys are watched.
func rewriteAssign(s *ast.AssignStmt) ast.Stmt {
	rewriteList(s.Rhs)
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		element, ok := s.Lhs[0].(*ast.AttrGetExpr)
		if !ok {
			return s
		}
		call := &ast.FuncCallStmt{Expr: callOf(setName, s.Line(), rewrite(element.Object), rewrite(element.Key), single(s.Rhs[0]))}
		call.SetLine(s.Line())
		return call
	}
	for _, left := range s.Lhs {
		if element, ok := left.(*ast.AttrGetExpr); ok {
			element.Object, element.Key = rewrite(element.Object), watchedKey(element.Key, s.Line())
		}
	}
	return s
}

func rewriteList(list []ast.Expr) {
	for i, expr := range list {
		list[i] = rewrite(expr)
	}
}

func rewrite(expr ast.Expr) ast.Expr {
	switch e := expr.(type) {
	case *ast.AttrGetExpr:
		e.Object, e.Key = rewrite(e.Object), rewrite(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			f.Value = rewrite(f.Value)
			if f.Key != nil {
				f.Key = watchedKey(f.Key, e.Line())
			}
		}
		return callOf(newName, e.Line(), e)
	case *ast.FuncCallExpr:
		e.Func, e.Receiver = rewrite(e.Func), rewrite(e.Receiver)
		rewriteList(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = rewrite(e.Lhs), rewrite(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = rewrite(e.Lhs), rewrite(e.Rhs)
	case *ast.StringConcatOpExpr:
		return callOf(concatName, e.Line(), single(rewrite(e.Lhs)), single(rewrite(e.Rhs)))
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = rewrite(e.Lhs), rewrite(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		e.Expr = rewrite(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = rewrite(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = rewrite(e.Expr)
	case *ast.FunctionExpr:
		rewriteBlock(e.Stmts)
		return callOf(newName, e.Line(), e)
	}
	return expr
}

// watchedKey is a key that may not be a high number. One that is written as a text needs no watching.
func watchedKey(key ast.Expr, line int) ast.Expr {
	if _, ok := key.(*ast.StringExpr); ok {
		return key
	}
	return callOf(keyName, line, single(rewrite(key)))
}

// callOf calls one of our functions, for one value.
func callOf(name string, line int, args ...ast.Expr) ast.Expr {
	fn := &ast.IdentExpr{Value: name}
	call := &ast.FuncCallExpr{Func: fn, Args: args, AdjustRet: true}
	fn.SetLine(line)
	call.SetLine(line)
	call.SetLastLine(line)
	return call
}

// single makes one value of an expression that may have several, as an operator does.
func single(expr ast.Expr) ast.Expr {
	switch e := expr.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
	return expr
}
