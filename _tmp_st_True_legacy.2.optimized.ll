; ModuleID = '<string>'
source_filename = "<string>"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; Function Attrs: nofree norecurse nosync nounwind memory(argmem: readwrite)
define void @r_kernel(ptr noalias readonly align 16 captures(none) dereferenceable(12845056) %arg0, ptr noalias writeonly align 64 captures(none) dereferenceable(12845056) %arg1, i64 %begin, i64 %end) local_unnamed_addr #0 {
entry:
  %.8 = tail call i64 @llvm.smin.i64(i64 %end, i64 896)
  %.403 = icmp slt i64 %begin, %.8
  br i1 %.403, label %loop, label %after.3

loop:                                             ; preds = %entry, %after.1.7
  %i4 = phi i64 [ %.42, %after.1.7 ], [ %begin, %entry ]
  %.9 = urem i64 %i4, 56
  %.10 = udiv i64 %i4, 56
  %.13 = mul nuw nsw i64 %.10, 200704
  %0 = getelementptr inbounds nuw float, ptr %arg0, i64 %.13
  %1 = getelementptr inbounds nuw float, ptr %arg1, i64 %.13
  %.idx = mul nuw nsw i64 %.9, 224
  %2 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx
  %.idx1 = mul nuw nsw i64 %.9, 14336
  %3 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1
  br label %loop.2

loop.2:                                           ; preds = %loop.2, %loop
  %i.2 = phi i64 [ 0, %loop ], [ %.32.380, %loop.2 ]
  %.idx2 = shl nuw nsw i64 %i.2, 8
  %4 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2
  %5 = getelementptr inbounds nuw float, ptr %2, i64 %i.2
  %6 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather62 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %6, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather62, ptr %4, align 64
  %7 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather62.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %7, <16 x i1> splat (i1 true), <16 x float> poison)
  %8 = getelementptr inbounds nuw i8, ptr %4, i64 64
  store <16 x float> %wide.masked.gather62.1, ptr %8, align 64
  %9 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather62.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %9, <16 x i1> splat (i1 true), <16 x float> poison)
  %10 = getelementptr inbounds nuw i8, ptr %4, i64 128
  store <16 x float> %wide.masked.gather62.2, ptr %10, align 64
  %11 = getelementptr inbounds nuw i8, ptr %5, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather62.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %11, <16 x i1> splat (i1 true), <16 x float> poison)
  %12 = getelementptr inbounds nuw i8, ptr %4, i64 192
  store <16 x float> %wide.masked.gather62.3, ptr %12, align 64
  %.32 = or disjoint i64 %i.2, 1
  %.idx2.167 = shl nuw nsw i64 %.32, 8
  %13 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2.167
  %14 = getelementptr inbounds nuw float, ptr %2, i64 %.32
  %15 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather62.169 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %15, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather62.169, ptr %13, align 64
  %16 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather62.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %16, <16 x i1> splat (i1 true), <16 x float> poison)
  %17 = getelementptr inbounds nuw i8, ptr %13, i64 64
  store <16 x float> %wide.masked.gather62.1.1, ptr %17, align 64
  %18 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather62.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %18, <16 x i1> splat (i1 true), <16 x float> poison)
  %19 = getelementptr inbounds nuw i8, ptr %13, i64 128
  store <16 x float> %wide.masked.gather62.2.1, ptr %19, align 64
  %20 = getelementptr inbounds nuw i8, ptr %14, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather62.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %20, <16 x i1> splat (i1 true), <16 x float> poison)
  %21 = getelementptr inbounds nuw i8, ptr %13, i64 192
  store <16 x float> %wide.masked.gather62.3.1, ptr %21, align 64
  %.32.170 = or disjoint i64 %i.2, 2
  %.idx2.272 = shl nuw nsw i64 %.32.170, 8
  %22 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2.272
  %23 = getelementptr inbounds nuw float, ptr %2, i64 %.32.170
  %24 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather62.274 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %24, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather62.274, ptr %22, align 64
  %25 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather62.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %25, <16 x i1> splat (i1 true), <16 x float> poison)
  %26 = getelementptr inbounds nuw i8, ptr %22, i64 64
  store <16 x float> %wide.masked.gather62.1.2, ptr %26, align 64
  %27 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather62.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %27, <16 x i1> splat (i1 true), <16 x float> poison)
  %28 = getelementptr inbounds nuw i8, ptr %22, i64 128
  store <16 x float> %wide.masked.gather62.2.2, ptr %28, align 64
  %29 = getelementptr inbounds nuw i8, ptr %23, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather62.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %29, <16 x i1> splat (i1 true), <16 x float> poison)
  %30 = getelementptr inbounds nuw i8, ptr %22, i64 192
  store <16 x float> %wide.masked.gather62.3.2, ptr %30, align 64
  %.32.275 = or disjoint i64 %i.2, 3
  %.idx2.377 = shl nuw nsw i64 %.32.275, 8
  %31 = getelementptr inbounds nuw i8, ptr %3, i64 %.idx2.377
  %32 = getelementptr inbounds nuw float, ptr %2, i64 %.32.275
  %33 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather62.379 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %33, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather62.379, ptr %31, align 64
  %34 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather62.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %34, <16 x i1> splat (i1 true), <16 x float> poison)
  %35 = getelementptr inbounds nuw i8, ptr %31, i64 64
  store <16 x float> %wide.masked.gather62.1.3, ptr %35, align 64
  %36 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather62.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %36, <16 x i1> splat (i1 true), <16 x float> poison)
  %37 = getelementptr inbounds nuw i8, ptr %31, i64 128
  store <16 x float> %wide.masked.gather62.2.3, ptr %37, align 64
  %38 = getelementptr inbounds nuw i8, ptr %32, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather62.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %38, <16 x i1> splat (i1 true), <16 x float> poison)
  %39 = getelementptr inbounds nuw i8, ptr %31, i64 192
  store <16 x float> %wide.masked.gather62.3.3, ptr %39, align 64
  %.32.380 = add nuw nsw i64 %i.2, 4
  %exitcond5.not.3 = icmp eq i64 %.32.380, 56
  br i1 %exitcond5.not.3, label %after.1, label %loop.2

after.1:                                          ; preds = %loop.2
  %.12.1 = add nuw nsw i64 %.9, 1
  %.idx.1 = mul nuw nsw i64 %.12.1, 224
  %40 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.1
  %.idx1.1 = mul nuw nsw i64 %.12.1, 14336
  %41 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.1
  br label %loop.2.1

loop.2.1:                                         ; preds = %loop.2.1, %after.1
  %i.2.1 = phi i64 [ 0, %after.1 ], [ %.32.1.3, %loop.2.1 ]
  %.idx2.1 = shl nuw nsw i64 %i.2.1, 8
  %42 = getelementptr inbounds nuw i8, ptr %41, i64 %.idx2.1
  %43 = getelementptr inbounds nuw float, ptr %40, i64 %i.2.1
  %44 = getelementptr inbounds nuw i8, ptr %43, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather54 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %44, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather54, ptr %42, align 64
  %45 = getelementptr inbounds nuw i8, ptr %43, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather54.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %45, <16 x i1> splat (i1 true), <16 x float> poison)
  %46 = getelementptr inbounds nuw i8, ptr %42, i64 64
  store <16 x float> %wide.masked.gather54.1, ptr %46, align 64
  %47 = getelementptr inbounds nuw i8, ptr %43, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather54.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %47, <16 x i1> splat (i1 true), <16 x float> poison)
  %48 = getelementptr inbounds nuw i8, ptr %42, i64 128
  store <16 x float> %wide.masked.gather54.2, ptr %48, align 64
  %49 = getelementptr inbounds nuw i8, ptr %43, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather54.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %49, <16 x i1> splat (i1 true), <16 x float> poison)
  %50 = getelementptr inbounds nuw i8, ptr %42, i64 192
  store <16 x float> %wide.masked.gather54.3, ptr %50, align 64
  %.32.1 = or disjoint i64 %i.2.1, 1
  %.idx2.1.1 = shl nuw nsw i64 %.32.1, 8
  %51 = getelementptr inbounds nuw i8, ptr %41, i64 %.idx2.1.1
  %52 = getelementptr inbounds nuw float, ptr %40, i64 %.32.1
  %53 = getelementptr inbounds nuw i8, ptr %52, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather54.181 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %53, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather54.181, ptr %51, align 64
  %54 = getelementptr inbounds nuw i8, ptr %52, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather54.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %54, <16 x i1> splat (i1 true), <16 x float> poison)
  %55 = getelementptr inbounds nuw i8, ptr %51, i64 64
  store <16 x float> %wide.masked.gather54.1.1, ptr %55, align 64
  %56 = getelementptr inbounds nuw i8, ptr %52, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather54.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %56, <16 x i1> splat (i1 true), <16 x float> poison)
  %57 = getelementptr inbounds nuw i8, ptr %51, i64 128
  store <16 x float> %wide.masked.gather54.2.1, ptr %57, align 64
  %58 = getelementptr inbounds nuw i8, ptr %52, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather54.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %58, <16 x i1> splat (i1 true), <16 x float> poison)
  %59 = getelementptr inbounds nuw i8, ptr %51, i64 192
  store <16 x float> %wide.masked.gather54.3.1, ptr %59, align 64
  %.32.1.1 = or disjoint i64 %i.2.1, 2
  %.idx2.1.2 = shl nuw nsw i64 %.32.1.1, 8
  %60 = getelementptr inbounds nuw i8, ptr %41, i64 %.idx2.1.2
  %61 = getelementptr inbounds nuw float, ptr %40, i64 %.32.1.1
  %62 = getelementptr inbounds nuw i8, ptr %61, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather54.282 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %62, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather54.282, ptr %60, align 64
  %63 = getelementptr inbounds nuw i8, ptr %61, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather54.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %63, <16 x i1> splat (i1 true), <16 x float> poison)
  %64 = getelementptr inbounds nuw i8, ptr %60, i64 64
  store <16 x float> %wide.masked.gather54.1.2, ptr %64, align 64
  %65 = getelementptr inbounds nuw i8, ptr %61, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather54.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %65, <16 x i1> splat (i1 true), <16 x float> poison)
  %66 = getelementptr inbounds nuw i8, ptr %60, i64 128
  store <16 x float> %wide.masked.gather54.2.2, ptr %66, align 64
  %67 = getelementptr inbounds nuw i8, ptr %61, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather54.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %67, <16 x i1> splat (i1 true), <16 x float> poison)
  %68 = getelementptr inbounds nuw i8, ptr %60, i64 192
  store <16 x float> %wide.masked.gather54.3.2, ptr %68, align 64
  %.32.1.2 = or disjoint i64 %i.2.1, 3
  %.idx2.1.3 = shl nuw nsw i64 %.32.1.2, 8
  %69 = getelementptr inbounds nuw i8, ptr %41, i64 %.idx2.1.3
  %70 = getelementptr inbounds nuw float, ptr %40, i64 %.32.1.2
  %71 = getelementptr inbounds nuw i8, ptr %70, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather54.383 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %71, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather54.383, ptr %69, align 64
  %72 = getelementptr inbounds nuw i8, ptr %70, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather54.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %72, <16 x i1> splat (i1 true), <16 x float> poison)
  %73 = getelementptr inbounds nuw i8, ptr %69, i64 64
  store <16 x float> %wide.masked.gather54.1.3, ptr %73, align 64
  %74 = getelementptr inbounds nuw i8, ptr %70, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather54.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %74, <16 x i1> splat (i1 true), <16 x float> poison)
  %75 = getelementptr inbounds nuw i8, ptr %69, i64 128
  store <16 x float> %wide.masked.gather54.2.3, ptr %75, align 64
  %76 = getelementptr inbounds nuw i8, ptr %70, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather54.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %76, <16 x i1> splat (i1 true), <16 x float> poison)
  %77 = getelementptr inbounds nuw i8, ptr %69, i64 192
  store <16 x float> %wide.masked.gather54.3.3, ptr %77, align 64
  %.32.1.3 = add nuw nsw i64 %i.2.1, 4
  %exitcond5.1.not.3 = icmp eq i64 %.32.1.3, 56
  br i1 %exitcond5.1.not.3, label %after.1.1, label %loop.2.1

after.1.1:                                        ; preds = %loop.2.1
  %.12.2 = add nuw nsw i64 %.9, 2
  %.idx.2 = mul nuw nsw i64 %.12.2, 224
  %78 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.2
  %.idx1.2 = mul nuw nsw i64 %.12.2, 14336
  %79 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.2
  br label %loop.2.2

loop.2.2:                                         ; preds = %loop.2.2, %after.1.1
  %i.2.2 = phi i64 [ 0, %after.1.1 ], [ %.32.2.3, %loop.2.2 ]
  %.idx2.2 = shl nuw nsw i64 %i.2.2, 8
  %80 = getelementptr inbounds nuw i8, ptr %79, i64 %.idx2.2
  %81 = getelementptr inbounds nuw float, ptr %78, i64 %i.2.2
  %82 = getelementptr inbounds nuw i8, ptr %81, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather46 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %82, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather46, ptr %80, align 64
  %83 = getelementptr inbounds nuw i8, ptr %81, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather46.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %83, <16 x i1> splat (i1 true), <16 x float> poison)
  %84 = getelementptr inbounds nuw i8, ptr %80, i64 64
  store <16 x float> %wide.masked.gather46.1, ptr %84, align 64
  %85 = getelementptr inbounds nuw i8, ptr %81, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather46.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %85, <16 x i1> splat (i1 true), <16 x float> poison)
  %86 = getelementptr inbounds nuw i8, ptr %80, i64 128
  store <16 x float> %wide.masked.gather46.2, ptr %86, align 64
  %87 = getelementptr inbounds nuw i8, ptr %81, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather46.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %87, <16 x i1> splat (i1 true), <16 x float> poison)
  %88 = getelementptr inbounds nuw i8, ptr %80, i64 192
  store <16 x float> %wide.masked.gather46.3, ptr %88, align 64
  %.32.2 = or disjoint i64 %i.2.2, 1
  %.idx2.2.1 = shl nuw nsw i64 %.32.2, 8
  %89 = getelementptr inbounds nuw i8, ptr %79, i64 %.idx2.2.1
  %90 = getelementptr inbounds nuw float, ptr %78, i64 %.32.2
  %91 = getelementptr inbounds nuw i8, ptr %90, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather46.184 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %91, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather46.184, ptr %89, align 64
  %92 = getelementptr inbounds nuw i8, ptr %90, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather46.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %92, <16 x i1> splat (i1 true), <16 x float> poison)
  %93 = getelementptr inbounds nuw i8, ptr %89, i64 64
  store <16 x float> %wide.masked.gather46.1.1, ptr %93, align 64
  %94 = getelementptr inbounds nuw i8, ptr %90, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather46.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %94, <16 x i1> splat (i1 true), <16 x float> poison)
  %95 = getelementptr inbounds nuw i8, ptr %89, i64 128
  store <16 x float> %wide.masked.gather46.2.1, ptr %95, align 64
  %96 = getelementptr inbounds nuw i8, ptr %90, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather46.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %96, <16 x i1> splat (i1 true), <16 x float> poison)
  %97 = getelementptr inbounds nuw i8, ptr %89, i64 192
  store <16 x float> %wide.masked.gather46.3.1, ptr %97, align 64
  %.32.2.1 = or disjoint i64 %i.2.2, 2
  %.idx2.2.2 = shl nuw nsw i64 %.32.2.1, 8
  %98 = getelementptr inbounds nuw i8, ptr %79, i64 %.idx2.2.2
  %99 = getelementptr inbounds nuw float, ptr %78, i64 %.32.2.1
  %100 = getelementptr inbounds nuw i8, ptr %99, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather46.285 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %100, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather46.285, ptr %98, align 64
  %101 = getelementptr inbounds nuw i8, ptr %99, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather46.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %101, <16 x i1> splat (i1 true), <16 x float> poison)
  %102 = getelementptr inbounds nuw i8, ptr %98, i64 64
  store <16 x float> %wide.masked.gather46.1.2, ptr %102, align 64
  %103 = getelementptr inbounds nuw i8, ptr %99, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather46.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %103, <16 x i1> splat (i1 true), <16 x float> poison)
  %104 = getelementptr inbounds nuw i8, ptr %98, i64 128
  store <16 x float> %wide.masked.gather46.2.2, ptr %104, align 64
  %105 = getelementptr inbounds nuw i8, ptr %99, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather46.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %105, <16 x i1> splat (i1 true), <16 x float> poison)
  %106 = getelementptr inbounds nuw i8, ptr %98, i64 192
  store <16 x float> %wide.masked.gather46.3.2, ptr %106, align 64
  %.32.2.2 = or disjoint i64 %i.2.2, 3
  %.idx2.2.3 = shl nuw nsw i64 %.32.2.2, 8
  %107 = getelementptr inbounds nuw i8, ptr %79, i64 %.idx2.2.3
  %108 = getelementptr inbounds nuw float, ptr %78, i64 %.32.2.2
  %109 = getelementptr inbounds nuw i8, ptr %108, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather46.386 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %109, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather46.386, ptr %107, align 64
  %110 = getelementptr inbounds nuw i8, ptr %108, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather46.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %110, <16 x i1> splat (i1 true), <16 x float> poison)
  %111 = getelementptr inbounds nuw i8, ptr %107, i64 64
  store <16 x float> %wide.masked.gather46.1.3, ptr %111, align 64
  %112 = getelementptr inbounds nuw i8, ptr %108, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather46.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %112, <16 x i1> splat (i1 true), <16 x float> poison)
  %113 = getelementptr inbounds nuw i8, ptr %107, i64 128
  store <16 x float> %wide.masked.gather46.2.3, ptr %113, align 64
  %114 = getelementptr inbounds nuw i8, ptr %108, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather46.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %114, <16 x i1> splat (i1 true), <16 x float> poison)
  %115 = getelementptr inbounds nuw i8, ptr %107, i64 192
  store <16 x float> %wide.masked.gather46.3.3, ptr %115, align 64
  %.32.2.3 = add nuw nsw i64 %i.2.2, 4
  %exitcond5.2.not.3 = icmp eq i64 %.32.2.3, 56
  br i1 %exitcond5.2.not.3, label %after.1.2, label %loop.2.2

after.1.2:                                        ; preds = %loop.2.2
  %.12.3 = add nuw nsw i64 %.9, 3
  %.idx.3 = mul nuw nsw i64 %.12.3, 224
  %116 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.3
  %.idx1.3 = mul nuw nsw i64 %.12.3, 14336
  %117 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.3
  br label %loop.2.3

loop.2.3:                                         ; preds = %loop.2.3, %after.1.2
  %i.2.3 = phi i64 [ 0, %after.1.2 ], [ %.32.3.3, %loop.2.3 ]
  %.idx2.3 = shl nuw nsw i64 %i.2.3, 8
  %118 = getelementptr inbounds nuw i8, ptr %117, i64 %.idx2.3
  %119 = getelementptr inbounds nuw float, ptr %116, i64 %i.2.3
  %120 = getelementptr inbounds nuw i8, ptr %119, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather38 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %120, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather38, ptr %118, align 64
  %121 = getelementptr inbounds nuw i8, ptr %119, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather38.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %121, <16 x i1> splat (i1 true), <16 x float> poison)
  %122 = getelementptr inbounds nuw i8, ptr %118, i64 64
  store <16 x float> %wide.masked.gather38.1, ptr %122, align 64
  %123 = getelementptr inbounds nuw i8, ptr %119, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather38.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %123, <16 x i1> splat (i1 true), <16 x float> poison)
  %124 = getelementptr inbounds nuw i8, ptr %118, i64 128
  store <16 x float> %wide.masked.gather38.2, ptr %124, align 64
  %125 = getelementptr inbounds nuw i8, ptr %119, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather38.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %125, <16 x i1> splat (i1 true), <16 x float> poison)
  %126 = getelementptr inbounds nuw i8, ptr %118, i64 192
  store <16 x float> %wide.masked.gather38.3, ptr %126, align 64
  %.32.3 = or disjoint i64 %i.2.3, 1
  %.idx2.3.1 = shl nuw nsw i64 %.32.3, 8
  %127 = getelementptr inbounds nuw i8, ptr %117, i64 %.idx2.3.1
  %128 = getelementptr inbounds nuw float, ptr %116, i64 %.32.3
  %129 = getelementptr inbounds nuw i8, ptr %128, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather38.187 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %129, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather38.187, ptr %127, align 64
  %130 = getelementptr inbounds nuw i8, ptr %128, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather38.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %130, <16 x i1> splat (i1 true), <16 x float> poison)
  %131 = getelementptr inbounds nuw i8, ptr %127, i64 64
  store <16 x float> %wide.masked.gather38.1.1, ptr %131, align 64
  %132 = getelementptr inbounds nuw i8, ptr %128, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather38.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %132, <16 x i1> splat (i1 true), <16 x float> poison)
  %133 = getelementptr inbounds nuw i8, ptr %127, i64 128
  store <16 x float> %wide.masked.gather38.2.1, ptr %133, align 64
  %134 = getelementptr inbounds nuw i8, ptr %128, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather38.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %134, <16 x i1> splat (i1 true), <16 x float> poison)
  %135 = getelementptr inbounds nuw i8, ptr %127, i64 192
  store <16 x float> %wide.masked.gather38.3.1, ptr %135, align 64
  %.32.3.1 = or disjoint i64 %i.2.3, 2
  %.idx2.3.2 = shl nuw nsw i64 %.32.3.1, 8
  %136 = getelementptr inbounds nuw i8, ptr %117, i64 %.idx2.3.2
  %137 = getelementptr inbounds nuw float, ptr %116, i64 %.32.3.1
  %138 = getelementptr inbounds nuw i8, ptr %137, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather38.288 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %138, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather38.288, ptr %136, align 64
  %139 = getelementptr inbounds nuw i8, ptr %137, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather38.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %139, <16 x i1> splat (i1 true), <16 x float> poison)
  %140 = getelementptr inbounds nuw i8, ptr %136, i64 64
  store <16 x float> %wide.masked.gather38.1.2, ptr %140, align 64
  %141 = getelementptr inbounds nuw i8, ptr %137, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather38.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %141, <16 x i1> splat (i1 true), <16 x float> poison)
  %142 = getelementptr inbounds nuw i8, ptr %136, i64 128
  store <16 x float> %wide.masked.gather38.2.2, ptr %142, align 64
  %143 = getelementptr inbounds nuw i8, ptr %137, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather38.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %143, <16 x i1> splat (i1 true), <16 x float> poison)
  %144 = getelementptr inbounds nuw i8, ptr %136, i64 192
  store <16 x float> %wide.masked.gather38.3.2, ptr %144, align 64
  %.32.3.2 = or disjoint i64 %i.2.3, 3
  %.idx2.3.3 = shl nuw nsw i64 %.32.3.2, 8
  %145 = getelementptr inbounds nuw i8, ptr %117, i64 %.idx2.3.3
  %146 = getelementptr inbounds nuw float, ptr %116, i64 %.32.3.2
  %147 = getelementptr inbounds nuw i8, ptr %146, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather38.389 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %147, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather38.389, ptr %145, align 64
  %148 = getelementptr inbounds nuw i8, ptr %146, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather38.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %148, <16 x i1> splat (i1 true), <16 x float> poison)
  %149 = getelementptr inbounds nuw i8, ptr %145, i64 64
  store <16 x float> %wide.masked.gather38.1.3, ptr %149, align 64
  %150 = getelementptr inbounds nuw i8, ptr %146, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather38.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %150, <16 x i1> splat (i1 true), <16 x float> poison)
  %151 = getelementptr inbounds nuw i8, ptr %145, i64 128
  store <16 x float> %wide.masked.gather38.2.3, ptr %151, align 64
  %152 = getelementptr inbounds nuw i8, ptr %146, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather38.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %152, <16 x i1> splat (i1 true), <16 x float> poison)
  %153 = getelementptr inbounds nuw i8, ptr %145, i64 192
  store <16 x float> %wide.masked.gather38.3.3, ptr %153, align 64
  %.32.3.3 = add nuw nsw i64 %i.2.3, 4
  %exitcond5.3.not.3 = icmp eq i64 %.32.3.3, 56
  br i1 %exitcond5.3.not.3, label %after.1.3, label %loop.2.3

after.1.3:                                        ; preds = %loop.2.3
  %.12.4 = add nuw nsw i64 %.9, 4
  %.idx.4 = mul nuw nsw i64 %.12.4, 224
  %154 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.4
  %.idx1.4 = mul nuw nsw i64 %.12.4, 14336
  %155 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.4
  br label %loop.2.4

loop.2.4:                                         ; preds = %loop.2.4, %after.1.3
  %i.2.4 = phi i64 [ 0, %after.1.3 ], [ %.32.4.3, %loop.2.4 ]
  %.idx2.4 = shl nuw nsw i64 %i.2.4, 8
  %156 = getelementptr inbounds nuw i8, ptr %155, i64 %.idx2.4
  %157 = getelementptr inbounds nuw float, ptr %154, i64 %i.2.4
  %158 = getelementptr inbounds nuw i8, ptr %157, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather30 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %158, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather30, ptr %156, align 64
  %159 = getelementptr inbounds nuw i8, ptr %157, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather30.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %159, <16 x i1> splat (i1 true), <16 x float> poison)
  %160 = getelementptr inbounds nuw i8, ptr %156, i64 64
  store <16 x float> %wide.masked.gather30.1, ptr %160, align 64
  %161 = getelementptr inbounds nuw i8, ptr %157, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather30.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %161, <16 x i1> splat (i1 true), <16 x float> poison)
  %162 = getelementptr inbounds nuw i8, ptr %156, i64 128
  store <16 x float> %wide.masked.gather30.2, ptr %162, align 64
  %163 = getelementptr inbounds nuw i8, ptr %157, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather30.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %163, <16 x i1> splat (i1 true), <16 x float> poison)
  %164 = getelementptr inbounds nuw i8, ptr %156, i64 192
  store <16 x float> %wide.masked.gather30.3, ptr %164, align 64
  %.32.4 = or disjoint i64 %i.2.4, 1
  %.idx2.4.1 = shl nuw nsw i64 %.32.4, 8
  %165 = getelementptr inbounds nuw i8, ptr %155, i64 %.idx2.4.1
  %166 = getelementptr inbounds nuw float, ptr %154, i64 %.32.4
  %167 = getelementptr inbounds nuw i8, ptr %166, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather30.190 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %167, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather30.190, ptr %165, align 64
  %168 = getelementptr inbounds nuw i8, ptr %166, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather30.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %168, <16 x i1> splat (i1 true), <16 x float> poison)
  %169 = getelementptr inbounds nuw i8, ptr %165, i64 64
  store <16 x float> %wide.masked.gather30.1.1, ptr %169, align 64
  %170 = getelementptr inbounds nuw i8, ptr %166, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather30.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %170, <16 x i1> splat (i1 true), <16 x float> poison)
  %171 = getelementptr inbounds nuw i8, ptr %165, i64 128
  store <16 x float> %wide.masked.gather30.2.1, ptr %171, align 64
  %172 = getelementptr inbounds nuw i8, ptr %166, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather30.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %172, <16 x i1> splat (i1 true), <16 x float> poison)
  %173 = getelementptr inbounds nuw i8, ptr %165, i64 192
  store <16 x float> %wide.masked.gather30.3.1, ptr %173, align 64
  %.32.4.1 = or disjoint i64 %i.2.4, 2
  %.idx2.4.2 = shl nuw nsw i64 %.32.4.1, 8
  %174 = getelementptr inbounds nuw i8, ptr %155, i64 %.idx2.4.2
  %175 = getelementptr inbounds nuw float, ptr %154, i64 %.32.4.1
  %176 = getelementptr inbounds nuw i8, ptr %175, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather30.291 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %176, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather30.291, ptr %174, align 64
  %177 = getelementptr inbounds nuw i8, ptr %175, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather30.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %177, <16 x i1> splat (i1 true), <16 x float> poison)
  %178 = getelementptr inbounds nuw i8, ptr %174, i64 64
  store <16 x float> %wide.masked.gather30.1.2, ptr %178, align 64
  %179 = getelementptr inbounds nuw i8, ptr %175, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather30.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %179, <16 x i1> splat (i1 true), <16 x float> poison)
  %180 = getelementptr inbounds nuw i8, ptr %174, i64 128
  store <16 x float> %wide.masked.gather30.2.2, ptr %180, align 64
  %181 = getelementptr inbounds nuw i8, ptr %175, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather30.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %181, <16 x i1> splat (i1 true), <16 x float> poison)
  %182 = getelementptr inbounds nuw i8, ptr %174, i64 192
  store <16 x float> %wide.masked.gather30.3.2, ptr %182, align 64
  %.32.4.2 = or disjoint i64 %i.2.4, 3
  %.idx2.4.3 = shl nuw nsw i64 %.32.4.2, 8
  %183 = getelementptr inbounds nuw i8, ptr %155, i64 %.idx2.4.3
  %184 = getelementptr inbounds nuw float, ptr %154, i64 %.32.4.2
  %185 = getelementptr inbounds nuw i8, ptr %184, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather30.392 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %185, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather30.392, ptr %183, align 64
  %186 = getelementptr inbounds nuw i8, ptr %184, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather30.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %186, <16 x i1> splat (i1 true), <16 x float> poison)
  %187 = getelementptr inbounds nuw i8, ptr %183, i64 64
  store <16 x float> %wide.masked.gather30.1.3, ptr %187, align 64
  %188 = getelementptr inbounds nuw i8, ptr %184, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather30.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %188, <16 x i1> splat (i1 true), <16 x float> poison)
  %189 = getelementptr inbounds nuw i8, ptr %183, i64 128
  store <16 x float> %wide.masked.gather30.2.3, ptr %189, align 64
  %190 = getelementptr inbounds nuw i8, ptr %184, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather30.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %190, <16 x i1> splat (i1 true), <16 x float> poison)
  %191 = getelementptr inbounds nuw i8, ptr %183, i64 192
  store <16 x float> %wide.masked.gather30.3.3, ptr %191, align 64
  %.32.4.3 = add nuw nsw i64 %i.2.4, 4
  %exitcond5.4.not.3 = icmp eq i64 %.32.4.3, 56
  br i1 %exitcond5.4.not.3, label %after.1.4, label %loop.2.4

after.1.4:                                        ; preds = %loop.2.4
  %.12.5 = add nuw nsw i64 %.9, 5
  %.idx.5 = mul nuw nsw i64 %.12.5, 224
  %192 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.5
  %.idx1.5 = mul nuw nsw i64 %.12.5, 14336
  %193 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.5
  br label %loop.2.5

loop.2.5:                                         ; preds = %loop.2.5, %after.1.4
  %i.2.5 = phi i64 [ 0, %after.1.4 ], [ %.32.5.3, %loop.2.5 ]
  %.idx2.5 = shl nuw nsw i64 %i.2.5, 8
  %194 = getelementptr inbounds nuw i8, ptr %193, i64 %.idx2.5
  %195 = getelementptr inbounds nuw float, ptr %192, i64 %i.2.5
  %196 = getelementptr inbounds nuw i8, ptr %195, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather22 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %196, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather22, ptr %194, align 64
  %197 = getelementptr inbounds nuw i8, ptr %195, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather22.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %197, <16 x i1> splat (i1 true), <16 x float> poison)
  %198 = getelementptr inbounds nuw i8, ptr %194, i64 64
  store <16 x float> %wide.masked.gather22.1, ptr %198, align 64
  %199 = getelementptr inbounds nuw i8, ptr %195, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather22.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %199, <16 x i1> splat (i1 true), <16 x float> poison)
  %200 = getelementptr inbounds nuw i8, ptr %194, i64 128
  store <16 x float> %wide.masked.gather22.2, ptr %200, align 64
  %201 = getelementptr inbounds nuw i8, ptr %195, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather22.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %201, <16 x i1> splat (i1 true), <16 x float> poison)
  %202 = getelementptr inbounds nuw i8, ptr %194, i64 192
  store <16 x float> %wide.masked.gather22.3, ptr %202, align 64
  %.32.5 = or disjoint i64 %i.2.5, 1
  %.idx2.5.1 = shl nuw nsw i64 %.32.5, 8
  %203 = getelementptr inbounds nuw i8, ptr %193, i64 %.idx2.5.1
  %204 = getelementptr inbounds nuw float, ptr %192, i64 %.32.5
  %205 = getelementptr inbounds nuw i8, ptr %204, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather22.193 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %205, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather22.193, ptr %203, align 64
  %206 = getelementptr inbounds nuw i8, ptr %204, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather22.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %206, <16 x i1> splat (i1 true), <16 x float> poison)
  %207 = getelementptr inbounds nuw i8, ptr %203, i64 64
  store <16 x float> %wide.masked.gather22.1.1, ptr %207, align 64
  %208 = getelementptr inbounds nuw i8, ptr %204, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather22.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %208, <16 x i1> splat (i1 true), <16 x float> poison)
  %209 = getelementptr inbounds nuw i8, ptr %203, i64 128
  store <16 x float> %wide.masked.gather22.2.1, ptr %209, align 64
  %210 = getelementptr inbounds nuw i8, ptr %204, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather22.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %210, <16 x i1> splat (i1 true), <16 x float> poison)
  %211 = getelementptr inbounds nuw i8, ptr %203, i64 192
  store <16 x float> %wide.masked.gather22.3.1, ptr %211, align 64
  %.32.5.1 = or disjoint i64 %i.2.5, 2
  %.idx2.5.2 = shl nuw nsw i64 %.32.5.1, 8
  %212 = getelementptr inbounds nuw i8, ptr %193, i64 %.idx2.5.2
  %213 = getelementptr inbounds nuw float, ptr %192, i64 %.32.5.1
  %214 = getelementptr inbounds nuw i8, ptr %213, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather22.294 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %214, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather22.294, ptr %212, align 64
  %215 = getelementptr inbounds nuw i8, ptr %213, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather22.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %215, <16 x i1> splat (i1 true), <16 x float> poison)
  %216 = getelementptr inbounds nuw i8, ptr %212, i64 64
  store <16 x float> %wide.masked.gather22.1.2, ptr %216, align 64
  %217 = getelementptr inbounds nuw i8, ptr %213, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather22.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %217, <16 x i1> splat (i1 true), <16 x float> poison)
  %218 = getelementptr inbounds nuw i8, ptr %212, i64 128
  store <16 x float> %wide.masked.gather22.2.2, ptr %218, align 64
  %219 = getelementptr inbounds nuw i8, ptr %213, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather22.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %219, <16 x i1> splat (i1 true), <16 x float> poison)
  %220 = getelementptr inbounds nuw i8, ptr %212, i64 192
  store <16 x float> %wide.masked.gather22.3.2, ptr %220, align 64
  %.32.5.2 = or disjoint i64 %i.2.5, 3
  %.idx2.5.3 = shl nuw nsw i64 %.32.5.2, 8
  %221 = getelementptr inbounds nuw i8, ptr %193, i64 %.idx2.5.3
  %222 = getelementptr inbounds nuw float, ptr %192, i64 %.32.5.2
  %223 = getelementptr inbounds nuw i8, ptr %222, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather22.395 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %223, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather22.395, ptr %221, align 64
  %224 = getelementptr inbounds nuw i8, ptr %222, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather22.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %224, <16 x i1> splat (i1 true), <16 x float> poison)
  %225 = getelementptr inbounds nuw i8, ptr %221, i64 64
  store <16 x float> %wide.masked.gather22.1.3, ptr %225, align 64
  %226 = getelementptr inbounds nuw i8, ptr %222, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather22.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %226, <16 x i1> splat (i1 true), <16 x float> poison)
  %227 = getelementptr inbounds nuw i8, ptr %221, i64 128
  store <16 x float> %wide.masked.gather22.2.3, ptr %227, align 64
  %228 = getelementptr inbounds nuw i8, ptr %222, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather22.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %228, <16 x i1> splat (i1 true), <16 x float> poison)
  %229 = getelementptr inbounds nuw i8, ptr %221, i64 192
  store <16 x float> %wide.masked.gather22.3.3, ptr %229, align 64
  %.32.5.3 = add nuw nsw i64 %i.2.5, 4
  %exitcond5.5.not.3 = icmp eq i64 %.32.5.3, 56
  br i1 %exitcond5.5.not.3, label %after.1.5, label %loop.2.5

after.1.5:                                        ; preds = %loop.2.5
  %.12.6 = add nuw nsw i64 %.9, 6
  %.idx.6 = mul nuw nsw i64 %.12.6, 224
  %230 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.6
  %.idx1.6 = mul nuw nsw i64 %.12.6, 14336
  %231 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.6
  br label %loop.2.6

loop.2.6:                                         ; preds = %loop.2.6, %after.1.5
  %i.2.6 = phi i64 [ 0, %after.1.5 ], [ %.32.6.3, %loop.2.6 ]
  %.idx2.6 = shl nuw nsw i64 %i.2.6, 8
  %232 = getelementptr inbounds nuw i8, ptr %231, i64 %.idx2.6
  %233 = getelementptr inbounds nuw float, ptr %230, i64 %i.2.6
  %234 = getelementptr inbounds nuw i8, ptr %233, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather14 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %234, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather14, ptr %232, align 64
  %235 = getelementptr inbounds nuw i8, ptr %233, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather14.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %235, <16 x i1> splat (i1 true), <16 x float> poison)
  %236 = getelementptr inbounds nuw i8, ptr %232, i64 64
  store <16 x float> %wide.masked.gather14.1, ptr %236, align 64
  %237 = getelementptr inbounds nuw i8, ptr %233, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather14.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %237, <16 x i1> splat (i1 true), <16 x float> poison)
  %238 = getelementptr inbounds nuw i8, ptr %232, i64 128
  store <16 x float> %wide.masked.gather14.2, ptr %238, align 64
  %239 = getelementptr inbounds nuw i8, ptr %233, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather14.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %239, <16 x i1> splat (i1 true), <16 x float> poison)
  %240 = getelementptr inbounds nuw i8, ptr %232, i64 192
  store <16 x float> %wide.masked.gather14.3, ptr %240, align 64
  %.32.6 = or disjoint i64 %i.2.6, 1
  %.idx2.6.1 = shl nuw nsw i64 %.32.6, 8
  %241 = getelementptr inbounds nuw i8, ptr %231, i64 %.idx2.6.1
  %242 = getelementptr inbounds nuw float, ptr %230, i64 %.32.6
  %243 = getelementptr inbounds nuw i8, ptr %242, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather14.196 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %243, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather14.196, ptr %241, align 64
  %244 = getelementptr inbounds nuw i8, ptr %242, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather14.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %244, <16 x i1> splat (i1 true), <16 x float> poison)
  %245 = getelementptr inbounds nuw i8, ptr %241, i64 64
  store <16 x float> %wide.masked.gather14.1.1, ptr %245, align 64
  %246 = getelementptr inbounds nuw i8, ptr %242, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather14.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %246, <16 x i1> splat (i1 true), <16 x float> poison)
  %247 = getelementptr inbounds nuw i8, ptr %241, i64 128
  store <16 x float> %wide.masked.gather14.2.1, ptr %247, align 64
  %248 = getelementptr inbounds nuw i8, ptr %242, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather14.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %248, <16 x i1> splat (i1 true), <16 x float> poison)
  %249 = getelementptr inbounds nuw i8, ptr %241, i64 192
  store <16 x float> %wide.masked.gather14.3.1, ptr %249, align 64
  %.32.6.1 = or disjoint i64 %i.2.6, 2
  %.idx2.6.2 = shl nuw nsw i64 %.32.6.1, 8
  %250 = getelementptr inbounds nuw i8, ptr %231, i64 %.idx2.6.2
  %251 = getelementptr inbounds nuw float, ptr %230, i64 %.32.6.1
  %252 = getelementptr inbounds nuw i8, ptr %251, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather14.297 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %252, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather14.297, ptr %250, align 64
  %253 = getelementptr inbounds nuw i8, ptr %251, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather14.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %253, <16 x i1> splat (i1 true), <16 x float> poison)
  %254 = getelementptr inbounds nuw i8, ptr %250, i64 64
  store <16 x float> %wide.masked.gather14.1.2, ptr %254, align 64
  %255 = getelementptr inbounds nuw i8, ptr %251, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather14.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %255, <16 x i1> splat (i1 true), <16 x float> poison)
  %256 = getelementptr inbounds nuw i8, ptr %250, i64 128
  store <16 x float> %wide.masked.gather14.2.2, ptr %256, align 64
  %257 = getelementptr inbounds nuw i8, ptr %251, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather14.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %257, <16 x i1> splat (i1 true), <16 x float> poison)
  %258 = getelementptr inbounds nuw i8, ptr %250, i64 192
  store <16 x float> %wide.masked.gather14.3.2, ptr %258, align 64
  %.32.6.2 = or disjoint i64 %i.2.6, 3
  %.idx2.6.3 = shl nuw nsw i64 %.32.6.2, 8
  %259 = getelementptr inbounds nuw i8, ptr %231, i64 %.idx2.6.3
  %260 = getelementptr inbounds nuw float, ptr %230, i64 %.32.6.2
  %261 = getelementptr inbounds nuw i8, ptr %260, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather14.398 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %261, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather14.398, ptr %259, align 64
  %262 = getelementptr inbounds nuw i8, ptr %260, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather14.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %262, <16 x i1> splat (i1 true), <16 x float> poison)
  %263 = getelementptr inbounds nuw i8, ptr %259, i64 64
  store <16 x float> %wide.masked.gather14.1.3, ptr %263, align 64
  %264 = getelementptr inbounds nuw i8, ptr %260, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather14.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %264, <16 x i1> splat (i1 true), <16 x float> poison)
  %265 = getelementptr inbounds nuw i8, ptr %259, i64 128
  store <16 x float> %wide.masked.gather14.2.3, ptr %265, align 64
  %266 = getelementptr inbounds nuw i8, ptr %260, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather14.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %266, <16 x i1> splat (i1 true), <16 x float> poison)
  %267 = getelementptr inbounds nuw i8, ptr %259, i64 192
  store <16 x float> %wide.masked.gather14.3.3, ptr %267, align 64
  %.32.6.3 = add nuw nsw i64 %i.2.6, 4
  %exitcond5.6.not.3 = icmp eq i64 %.32.6.3, 56
  br i1 %exitcond5.6.not.3, label %after.1.6, label %loop.2.6

after.1.6:                                        ; preds = %loop.2.6
  %.12.7 = add nuw nsw i64 %.9, 7
  %.idx.7 = mul nuw nsw i64 %.12.7, 224
  %268 = getelementptr inbounds nuw i8, ptr %0, i64 %.idx.7
  %.idx1.7 = mul nuw nsw i64 %.12.7, 14336
  %269 = getelementptr inbounds nuw i8, ptr %1, i64 %.idx1.7
  br label %loop.2.7

loop.2.7:                                         ; preds = %loop.2.7, %after.1.6
  %i.2.7 = phi i64 [ 0, %after.1.6 ], [ %.32.7.3, %loop.2.7 ]
  %.idx2.7 = shl nuw nsw i64 %i.2.7, 8
  %270 = getelementptr inbounds nuw i8, ptr %269, i64 %.idx2.7
  %271 = getelementptr inbounds nuw float, ptr %268, i64 %i.2.7
  %272 = getelementptr inbounds nuw i8, ptr %271, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %272, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather, ptr %270, align 64
  %273 = getelementptr inbounds nuw i8, ptr %271, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %273, <16 x i1> splat (i1 true), <16 x float> poison)
  %274 = getelementptr inbounds nuw i8, ptr %270, i64 64
  store <16 x float> %wide.masked.gather.1, ptr %274, align 64
  %275 = getelementptr inbounds nuw i8, ptr %271, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %275, <16 x i1> splat (i1 true), <16 x float> poison)
  %276 = getelementptr inbounds nuw i8, ptr %270, i64 128
  store <16 x float> %wide.masked.gather.2, ptr %276, align 64
  %277 = getelementptr inbounds nuw i8, ptr %271, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %277, <16 x i1> splat (i1 true), <16 x float> poison)
  %278 = getelementptr inbounds nuw i8, ptr %270, i64 192
  store <16 x float> %wide.masked.gather.3, ptr %278, align 64
  %.32.7 = or disjoint i64 %i.2.7, 1
  %.idx2.7.1 = shl nuw nsw i64 %.32.7, 8
  %279 = getelementptr inbounds nuw i8, ptr %269, i64 %.idx2.7.1
  %280 = getelementptr inbounds nuw float, ptr %268, i64 %.32.7
  %281 = getelementptr inbounds nuw i8, ptr %280, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather.199 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %281, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather.199, ptr %279, align 64
  %282 = getelementptr inbounds nuw i8, ptr %280, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %282, <16 x i1> splat (i1 true), <16 x float> poison)
  %283 = getelementptr inbounds nuw i8, ptr %279, i64 64
  store <16 x float> %wide.masked.gather.1.1, ptr %283, align 64
  %284 = getelementptr inbounds nuw i8, ptr %280, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %284, <16 x i1> splat (i1 true), <16 x float> poison)
  %285 = getelementptr inbounds nuw i8, ptr %279, i64 128
  store <16 x float> %wide.masked.gather.2.1, ptr %285, align 64
  %286 = getelementptr inbounds nuw i8, ptr %280, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3.1 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %286, <16 x i1> splat (i1 true), <16 x float> poison)
  %287 = getelementptr inbounds nuw i8, ptr %279, i64 192
  store <16 x float> %wide.masked.gather.3.1, ptr %287, align 64
  %.32.7.1 = or disjoint i64 %i.2.7, 2
  %.idx2.7.2 = shl nuw nsw i64 %.32.7.1, 8
  %288 = getelementptr inbounds nuw i8, ptr %269, i64 %.idx2.7.2
  %289 = getelementptr inbounds nuw float, ptr %268, i64 %.32.7.1
  %290 = getelementptr inbounds nuw i8, ptr %289, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather.2100 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %290, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather.2100, ptr %288, align 64
  %291 = getelementptr inbounds nuw i8, ptr %289, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %291, <16 x i1> splat (i1 true), <16 x float> poison)
  %292 = getelementptr inbounds nuw i8, ptr %288, i64 64
  store <16 x float> %wide.masked.gather.1.2, ptr %292, align 64
  %293 = getelementptr inbounds nuw i8, ptr %289, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %293, <16 x i1> splat (i1 true), <16 x float> poison)
  %294 = getelementptr inbounds nuw i8, ptr %288, i64 128
  store <16 x float> %wide.masked.gather.2.2, ptr %294, align 64
  %295 = getelementptr inbounds nuw i8, ptr %289, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3.2 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %295, <16 x i1> splat (i1 true), <16 x float> poison)
  %296 = getelementptr inbounds nuw i8, ptr %288, i64 192
  store <16 x float> %wide.masked.gather.3.2, ptr %296, align 64
  %.32.7.2 = or disjoint i64 %i.2.7, 3
  %.idx2.7.3 = shl nuw nsw i64 %.32.7.2, 8
  %297 = getelementptr inbounds nuw i8, ptr %269, i64 %.idx2.7.3
  %298 = getelementptr inbounds nuw float, ptr %268, i64 %.32.7.2
  %299 = getelementptr inbounds nuw i8, ptr %298, <16 x i64> <i64 0, i64 12544, i64 25088, i64 37632, i64 50176, i64 62720, i64 75264, i64 87808, i64 100352, i64 112896, i64 125440, i64 137984, i64 150528, i64 163072, i64 175616, i64 188160>
  %wide.masked.gather.3101 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %299, <16 x i1> splat (i1 true), <16 x float> poison)
  store <16 x float> %wide.masked.gather.3101, ptr %297, align 64
  %300 = getelementptr inbounds nuw i8, ptr %298, <16 x i64> <i64 200704, i64 213248, i64 225792, i64 238336, i64 250880, i64 263424, i64 275968, i64 288512, i64 301056, i64 313600, i64 326144, i64 338688, i64 351232, i64 363776, i64 376320, i64 388864>
  %wide.masked.gather.1.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %300, <16 x i1> splat (i1 true), <16 x float> poison)
  %301 = getelementptr inbounds nuw i8, ptr %297, i64 64
  store <16 x float> %wide.masked.gather.1.3, ptr %301, align 64
  %302 = getelementptr inbounds nuw i8, ptr %298, <16 x i64> <i64 401408, i64 413952, i64 426496, i64 439040, i64 451584, i64 464128, i64 476672, i64 489216, i64 501760, i64 514304, i64 526848, i64 539392, i64 551936, i64 564480, i64 577024, i64 589568>
  %wide.masked.gather.2.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %302, <16 x i1> splat (i1 true), <16 x float> poison)
  %303 = getelementptr inbounds nuw i8, ptr %297, i64 128
  store <16 x float> %wide.masked.gather.2.3, ptr %303, align 64
  %304 = getelementptr inbounds nuw i8, ptr %298, <16 x i64> <i64 602112, i64 614656, i64 627200, i64 639744, i64 652288, i64 664832, i64 677376, i64 689920, i64 702464, i64 715008, i64 727552, i64 740096, i64 752640, i64 765184, i64 777728, i64 790272>
  %wide.masked.gather.3.3 = tail call <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr> align 4 %304, <16 x i1> splat (i1 true), <16 x float> poison)
  %305 = getelementptr inbounds nuw i8, ptr %297, i64 192
  store <16 x float> %wide.masked.gather.3.3, ptr %305, align 64
  %.32.7.3 = add nuw nsw i64 %i.2.7, 4
  %exitcond5.7.not.3 = icmp eq i64 %.32.7.3, 56
  br i1 %exitcond5.7.not.3, label %after.1.7, label %loop.2.7

after.1.7:                                        ; preds = %loop.2.7
  %.42 = add nsw i64 %i4, 8
  %.40 = icmp slt i64 %.42, %.8
  br i1 %.40, label %loop, label %after.3

after.3:                                          ; preds = %after.1.7, %entry
  ret void
}

; Function Attrs: nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none)
declare i64 @llvm.smin.i64(i64, i64) #1

; Function Attrs: nocallback nofree nosync nounwind willreturn memory(read)
declare <16 x float> @llvm.masked.gather.v16f32.v16p0(<16 x ptr>, <16 x i1>, <16 x float>) #2

attributes #0 = { nofree norecurse nosync nounwind memory(argmem: readwrite) "denormal-fp-math"="preserve-sign,preserve-sign" "prefer-vector-width"="512" }
attributes #1 = { nocallback nocreateundeforpoison nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { nocallback nofree nosync nounwind willreturn memory(read) }
