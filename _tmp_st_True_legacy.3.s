	.file	"<string>"
	.section	.rodata,"a",@progbits
	.p2align	6, 0x0
.LCPI0_0:
	.long	0
	.long	12544
	.long	25088
	.long	37632
	.long	50176
	.long	62720
	.long	75264
	.long	87808
	.long	100352
	.long	112896
	.long	125440
	.long	137984
	.long	150528
	.long	163072
	.long	175616
	.long	188160
.LCPI0_1:
	.long	200704
	.long	213248
	.long	225792
	.long	238336
	.long	250880
	.long	263424
	.long	275968
	.long	288512
	.long	301056
	.long	313600
	.long	326144
	.long	338688
	.long	351232
	.long	363776
	.long	376320
	.long	388864
.LCPI0_2:
	.long	401408
	.long	413952
	.long	426496
	.long	439040
	.long	451584
	.long	464128
	.long	476672
	.long	489216
	.long	501760
	.long	514304
	.long	526848
	.long	539392
	.long	551936
	.long	564480
	.long	577024
	.long	589568
.LCPI0_3:
	.long	602112
	.long	614656
	.long	627200
	.long	639744
	.long	652288
	.long	664832
	.long	677376
	.long	689920
	.long	702464
	.long	715008
	.long	727552
	.long	740096
	.long	752640
	.long	765184
	.long	777728
	.long	790272
	.text
	.globl	r_kernel
	.p2align	4
	.type	r_kernel,@function
r_kernel:
	cmpq	$896, %rcx
	movl	$896, %r8d
	cmovlq	%rcx, %r8
	cmpq	%r8, %rdx
	jge	.LBB0_20
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	movq	%rdx, %rax
	imulq	$224, %rdx, %rcx
	addq	%rcx, %rdi
	imulq	$14336, %rdx, %rdx
	leaq	960(%rdx,%rsi), %rcx
	leaq	15296(%rdx,%rsi), %r9
	leaq	29632(%rdx,%rsi), %r10
	leaq	43968(%rdx,%rsi), %r11
	leaq	58304(%rdx,%rsi), %rbx
	leaq	72640(%rdx,%rsi), %r14
	leaq	86976(%rdx,%rsi), %r15
	leaq	101312(%rdx,%rsi), %rsi
	vmovaps	.LCPI0_0(%rip), %zmm0
	vmovaps	.LCPI0_1(%rip), %zmm1
	vmovaps	.LCPI0_2(%rip), %zmm2
	vmovaps	.LCPI0_3(%rip), %zmm3
	.p2align	4
.LBB0_2:
	movq	%rax, %rdx
	shrq	$3, %rdx
	movabsq	$2635249153387078803, %r12
	mulxq	%r12, %rdx, %rdx
	imulq	$790272, %rdx, %rdx
	addq	%rdi, %rdx
	movq	%rcx, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_3:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	4(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	8(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	12(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_3
	movq	%r9, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_5:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	224(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	224(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	224(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	224(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	228(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	228(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	228(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	228(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	232(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	232(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	232(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	232(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	236(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	236(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	236(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	236(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_5
	movq	%r10, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_7:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	448(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	448(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	448(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	448(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	452(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	452(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	452(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	452(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	456(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	456(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	456(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	456(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	460(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	460(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	460(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	460(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_7
	movq	%r11, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_9:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	672(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	672(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	672(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	672(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	676(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	676(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	676(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	676(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	680(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	680(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	680(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	680(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	684(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	684(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	684(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	684(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_9
	movq	%rbx, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_11:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	896(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	896(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	896(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	896(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	900(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	900(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	900(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	900(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	904(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	904(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	904(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	904(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	908(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	908(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	908(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	908(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_11
	movq	%r14, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_13:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1120(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1120(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1120(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1120(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1124(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1124(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1124(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1124(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1128(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1128(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1128(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1128(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1132(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1132(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1132(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1132(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_13
	movq	%r15, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_15:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1344(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1344(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1344(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1344(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1348(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1348(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1348(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1348(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1352(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1352(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1352(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1352(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1356(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1356(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1356(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1356(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_15
	movq	%rsi, %r13
	xorl	%ebp, %ebp
	.p2align	4
.LBB0_17:
	leaq	(%rdx,%rbp), %r12
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1568(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -960(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1568(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -896(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1568(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -832(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1568(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -768(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1572(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -704(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1572(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -640(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1572(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -576(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1572(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -512(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1576(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -448(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1576(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -384(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1576(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -320(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1576(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, -256(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1580(%r12,%zmm0), %zmm4 {%k1}
	vmovaps	%zmm4, -192(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1580(%r12,%zmm1), %zmm4 {%k1}
	vmovaps	%zmm4, -128(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1580(%r12,%zmm2), %zmm4 {%k1}
	vmovaps	%zmm4, -64(%r13)
	kxnorw	%k0, %k0, %k1
	vxorps	%xmm4, %xmm4, %xmm4
	vgatherdps	1580(%r12,%zmm3), %zmm4 {%k1}
	vmovaps	%zmm4, (%r13)
	addq	$16, %rbp
	addq	$1024, %r13
	cmpq	$224, %rbp
	jne	.LBB0_17
	addq	$8, %rax
	addq	$1792, %rdi
	addq	$114688, %rcx
	addq	$114688, %r9
	addq	$114688, %r10
	addq	$114688, %r11
	addq	$114688, %rbx
	addq	$114688, %r14
	addq	$114688, %r15
	addq	$114688, %rsi
	cmpq	%r8, %rax
	jl	.LBB0_2
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
.LBB0_20:
	vzeroupper
	retq
.Lfunc_end0:
	.size	r_kernel, .Lfunc_end0-r_kernel

	.section	".note.GNU-stack","",@progbits
