"""Canonical form: views stand directly on their memory, equal ones once, none that nothing uses."""

from __future__ import annotations

from mlir import ir, rewrite

VIEW, GLOBAL = "lhlo.view", "memref.get_global"


def canonicalize(op: ir.Operation) -> None:
    patterns = rewrite.RewritePatternSet()
    patterns.add(VIEW, _fold_view_of_view)
    patterns.add(VIEW, _fold_view_of_nothing_new)
    rewrite.walk_and_apply_patterns(op, patterns.freeze())
    for function in functions(op):
        _share(function.regions[0].blocks[0])
        _erase_unused(function.regions[0].blocks[0])
    _erase_unread_globals(op)


def functions(module: ir.Operation) -> list[ir.Operation]:
    return [o.operation for o in module.regions[0].blocks[0].operations if o.operation.name == "func.func"]


def offset_of(view: ir.Operation) -> int:
    return view.attributes["offset"].value if "offset" in view.attributes else 0


def make_view(source: ir.Value, offset: int, type_: ir.Type, before: ir.InsertionPoint) -> ir.Value:
    """A view of a type on the bytes of a memref from `offset` on, written at an insertion point."""
    integer = ir.IntegerType.get_signless(64, source.context)
    attributes = {"offset": ir.IntegerAttr.get(integer, offset)} if offset else {}
    with before, ir.Location.unknown(source.context):
        return ir.Operation.create(VIEW, results=[type_], operands=[source], attributes=attributes).result


def _fold_view_of_view(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
    """view(view(m, a), b) → view(m, a + b)."""
    inner = op.operands[0].owner
    if isinstance(inner, ir.Block) or inner.name != VIEW:
        return True
    with rewriter.ip:
        made = make_view(inner.operands[0], offset_of(inner) + offset_of(op), op.results[0].type, rewriter.ip)
    rewriter.replace_op(op, [made])
    return False


def _fold_view_of_nothing_new(op: ir.Operation, rewriter: rewrite.PatternRewriter) -> bool:
    """A view of the whole memref with its own type → the memref."""
    if offset_of(op) or op.operands[0].type != op.results[0].type:
        return True
    rewriter.replace_op(op, [op.operands[0]])
    return False


def _share(block: ir.Block) -> None:
    """Keep one of equal views and of equal reads of a global. Both stand in the function's block."""
    seen: dict[tuple[object, ...], ir.Operation] = {}
    for op in [o.operation for o in block.operations]:
        if op.name == VIEW:
            key: tuple[object, ...] = (op.operands[0], offset_of(op), str(op.results[0].type))
        elif op.name == GLOBAL:
            key = (str(op.attributes["name"]),)
        else:
            continue
        first = seen.setdefault(key, op)
        if first is not op:
            op.results[0].replace_all_uses_with(first.results[0])
            op.erase()


def _erase_unused(block: ir.Block) -> None:
    for op in reversed([o.operation for o in block.operations]):
        if op.name in (VIEW, GLOBAL) and not list(op.results[0].uses):
            op.erase()


def _erase_unread_globals(module: ir.Operation) -> None:
    block = module.regions[0].blocks[0]
    read = set()

    def note(op: ir.Operation) -> ir.WalkResult:
        if op.name == GLOBAL:
            read.add(ir.FlatSymbolRefAttr(op.attributes["name"]).value)
        return ir.WalkResult.ADVANCE

    module.walk(note)
    for op in [o.operation for o in block.operations]:
        if op.name == "memref.global" and op.attributes["sym_name"].value not in read:
            op.erase()
